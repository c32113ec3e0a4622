// Has allocations fail: the k-th one from now on that a thread of this process asks operator new for, in the executable
// or in a library, throws std::bad_alloc, and all others succeed. For one source file of a test, which it gives the
// operators.
#ifndef NEUROEVO_TESTS_NATIVE_ALLOCATIONS_H_
#define NEUROEVO_TESTS_NATIVE_ALLOCATIONS_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <thread>

#include "native/check.h"

namespace allocations {

inline std::atomic<int64_t> left{0};      // allocations up to the one that fails; 0 or less: none does
inline thread_local bool spared = false;  // whether this thread's neither count nor fail

inline void* Allocate(std::size_t size, std::size_t alignment) {
  if (!spared && left.load() > 0 && left.fetch_sub(1) == 1) return nullptr;
  size = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, size == 0 ? alignment : size);
}

inline void* AllocateOrThrow(std::size_t size, std::size_t alignment) {
  void* const memory = Allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Runs run() with every allocation failing in turn, each time in a thread of its own, so that what threads keep for
// themselves is allocated again, until none is left to fail. It must return what it returns where none fails.
//
// run() makes calls by Succeeds() below; what else it allocates does not count.
template <class Run>
void FailEach(Run run) {
  const auto result = [&run] {
    decltype(run()) found;
    std::exception_ptr error;
    std::thread([&] {
      spared = true;
      try {
        found = run();
      } catch (...) {
        error = std::current_exception();
      }
    }).join();
    if (error) std::rethrow_exception(error);
    return found;
  };
  spared = true;
  const auto expected = result();
  int64_t k = 0;
  for (bool failed = true; failed;) {
    left = ++k;
    const auto found = [&] {
      try {
        return result();
      } catch (const std::exception& error) {
        check::Fail(__FILE__, __LINE__, "after allocation " + std::to_string(k) + " had failed: " + error.what());
      }
    }();
    failed = left.exchange(0) <= 0;
    if (found != expected) {
      check::Fail(__FILE__, __LINE__, "after allocation " + std::to_string(k) + " had failed, results are others");
    }
  }
  std::printf("%lld allocations failed in turn\n", static_cast<long long>(k - 1));
}

// Makes a call of this thread whose allocations count, and returns what it returns.
template <class Call>
auto Counted(Call call) {
  struct Spare {
    ~Spare() { spared = true; }
  } spare;
  spared = false;
  return call();
}

}  // namespace allocations

// The forms for arrays call these. Not inlined, or the compiler warns that what new has made goes to free().
[[gnu::noinline]] void* operator new(std::size_t size) {
  return allocations::AllocateOrThrow(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocations::AllocateOrThrow(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocations::Allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocations::Allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif  // NEUROEVO_TESTS_NATIVE_ALLOCATIONS_H_
