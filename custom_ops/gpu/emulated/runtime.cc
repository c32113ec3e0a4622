#undef _FORTIFY_SOURCE  // its longjmp rejects jumps to another stack

#include "gpu/emulated/runtime.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/error.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace neuroevo::cuda::emulation {

thread_local uint3 thread_index, block_index;
thread_local dim3 block_dimensions, grid_dimensions;
thread_local char* dynamic_shared = nullptr;

namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr unsigned kMaxThreads = 1024;
constexpr size_t kMaxShared = 227 << 10;  // limit of an H200

struct Copy {
  void* dst;
  const void* src;
  int bytes;
};

// Notifications of the thread sanitizer when a CPU thread switches between fibers.
#ifdef __SANITIZE_THREAD__
struct Watched {
  void* fiber = __tsan_create_fiber(0);
  ~Watched() { __tsan_destroy_fiber(fiber); }
  Watched() = default;
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
};
void* WatchedThread() { return __tsan_get_current_fiber(); }
void WatchSwitch(void* fiber) { __tsan_switch_to_fiber(fiber, 0); }
#else
struct Watched {
  void* fiber = nullptr;
};
void* WatchedThread() { return nullptr; }
void WatchSwitch(void*) {}
#endif

// Point at which the scheduler or a fiber resumes. A jump needs no system call, unlike swapcontext, which saves the
// signal mask; but the sanitizers only support swapcontext.
struct Place {
  ucontext_t context;
  jmp_buf jump;
  bool jumps = false;  // whether to resume by the jump
};

// Resumes at `to` and returns when another fiber switches back to `from`. Not inlined, because setjmp returns twice.
[[gnu::noinline]] void Switch(Place* from, Place* to) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  swapcontext(&from->context, &to->context);
#else
  if (_setjmp(from->jump) != 0) return;
  from->jumps = true;
  if (to->jumps) _longjmp(to->jump, 1);
  setcontext(&to->context);
#endif
}

enum class State { kReady, kAtBarrier, kAtWarp, kDone };

struct Fiber {
  Place place;
  Watched watched;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  bool at_rest = false;  // in RunFiber, waiting for the next block
  State state = State::kDone;
  uint3 index;
  uint64_t given = 0;  // value passed to the other lanes of the warp
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> groups;  // committed groups that are not copied yet
};

// Scheduler of a CPU thread. Fibers are reused for the next block.
struct Runner {
  std::vector<std::unique_ptr<Fiber>> fibers;
  unsigned count = 0;
  Fiber* current = nullptr;
  Place scheduler;
  void* watched = nullptr;  // the scheduler's handle in the thread sanitizer
  const std::function<void()>* body = nullptr;
  std::exception_ptr error;
  std::mt19937 random;
};

Runner& OwnRunner() {
  thread_local Runner runner;
  return runner;
}

// Main function of a fiber: runs one thread of each block.
void RunFiber() {
  Runner& runner = OwnRunner();
  Fiber* self = runner.current;
  for (;;) {
    try {
      (*runner.body)();
    } catch (...) {
      runner.error = std::current_exception();
    }
    self->state = State::kDone;
    self->at_rest = true;
    WatchSwitch(runner.watched);
    Switch(&self->place, &runner.scheduler);
    self->at_rest = false;
  }
}

void Yield(State state) {
  Runner& runner = OwnRunner();
  Fiber* self = runner.current;
  self->state = state;
  WatchSwitch(runner.watched);
  Switch(&self->place, &runner.scheduler);
}

void Resume(Runner* runner, Fiber* fiber) {
  runner->current = fiber;
  thread_index = fiber->index;
  WatchSwitch(fiber->watched.fiber);
  Switch(&runner->scheduler, &fiber->place);
  if (runner->error) std::rethrow_exception(std::exchange(runner->error, nullptr));
}

// Marks threads as ready whose whole warp has reached a warp operation, or whose whole block has reached a barrier.
// Returns false if all threads are done.
bool Release(Runner* runner) {
  bool any = false, all_at_barrier = true, done = true;
  for (unsigned first = 0; first < runner->count; first += 32) {
    const unsigned end = std::min(first + 32, runner->count);
    bool warp_waits = false, warp_complete = true;
    for (unsigned t = first; t < end; ++t) {
      const State state = runner->fibers[t]->state;
      warp_waits |= state == State::kAtWarp;
      warp_complete &= state == State::kAtWarp || state == State::kDone;
      all_at_barrier &= state == State::kAtBarrier || state == State::kDone;
      done &= state == State::kDone;
    }
    if (!warp_waits || !warp_complete) continue;
    for (unsigned t = first; t < end; ++t) {
      if (runner->fibers[t]->state == State::kAtWarp) runner->fibers[t]->state = State::kReady;
    }
    any = true;
  }
  if (done) return false;
  if (any) return true;
  if (!all_at_barrier) {
    throw Error(Error::Kind::kInternal, "deadlock: threads of a block wait at different barriers");
  }
  for (unsigned t = 0; t < runner->count; ++t) {
    if (runner->fibers[t]->state == State::kAtBarrier) runner->fibers[t]->state = State::kReady;
  }
  return true;
}

// A separate function, because getcontext returns twice.
void Begin(Place* place, char* stack) {
  place->jumps = false;
  getcontext(&place->context);
  place->context.uc_stack.ss_sp = stack;
  place->context.uc_stack.ss_size = kStackBytes;
  place->context.uc_link = nullptr;
  makecontext(&place->context, RunFiber, 0);
}

void Prepare(Fiber* fiber) {
  fiber->open.clear();
  fiber->groups.clear();
  if (!fiber->at_rest) Begin(&fiber->place, fiber->stack.get());  // new, or interrupted when an error ended its block
  fiber->state = State::kReady;
}

void RunBlock(Runner* runner) {
  std::vector<unsigned> order(runner->count);
  std::iota(order.begin(), order.end(), 0);
  for (unsigned t = 0; t < runner->count; ++t) {
    Fiber& fiber = *runner->fibers[t];
    fiber.index = {t % block_dimensions.x, t / block_dimensions.x % block_dimensions.y,
                   t / block_dimensions.x / block_dimensions.y};
    Prepare(&fiber);
  }
  do {
    // Shuffle warps as well as lanes, since the threads of a warp need not run in lockstep.
    std::shuffle(order.begin(), order.end(), runner->random);
    for (unsigned t : order) {
      if (runner->fibers[t]->state == State::kReady) Resume(runner, runner->fibers[t].get());
    }
  } while (Release(runner));
}

}  // namespace

void Barrier() { Yield(State::kAtBarrier); }

uint64_t Exchange(uint64_t value, int source) {
  Runner& runner = OwnRunner();
  Fiber* self = runner.current;
  const unsigned number = self->index.x + block_dimensions.x * (self->index.y + block_dimensions.y * self->index.z);
  self->given = value;
  Yield(State::kAtWarp);
  const unsigned other = number / 32 * 32 + static_cast<unsigned>(source);
  const bool there = source >= 0 && source < 32 && other < runner.count;
  const uint64_t got = there ? runner.fibers[other]->given : value;
  Yield(State::kAtWarp);  // no thread passes a new value before all have read this one
  return got;
}

void Multiply(const uint32_t (&a)[4], const uint32_t (&b)[2], int32_t (&sums)[4]) {
  struct Operands {
    uint32_t a[4], b[2];
  } own = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  Runner& runner = OwnRunner();
  Fiber* self = runner.current;
  const unsigned number = self->index.x + block_dimensions.x * (self->index.y + block_dimensions.y * self->index.z);
  const unsigned lane = number % 32, first = number - lane;
  if (first + 32 > runner.count) {
    throw Error(Error::Kind::kInternal, "the tensor cores are used by fewer threads than a warp");
  }
  self->given = reinterpret_cast<uintptr_t>(&own);
  Yield(State::kAtWarp);
  const auto operands = [&](unsigned other) {
    return reinterpret_cast<const Operands*>(static_cast<uintptr_t>(runner.fibers[first + other]->given));
  };
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned t = 0; t < 4; ++t) {
      const Operands* left = operands(lane / 4 * 4 + t);
      const Operands* right = operands((lane % 4 * 2 + i % 2) * 4 + t);
      sums[i] = DotBytes(left->a[i / 2], right->b[0], sums[i]);
      sums[i] = DotBytes(left->a[i / 2 + 2], right->b[1], sums[i]);
    }
  }
  Yield(State::kAtWarp);  // keep all operands alive until every thread has used them
}

void StartCopy(void* dst, const void* src, int bytes) {
  if ((reinterpret_cast<uintptr_t>(dst) | reinterpret_cast<uintptr_t>(src)) % static_cast<uintptr_t>(bytes) != 0) {
    throw Error(Error::Kind::kInternal, Concat("an asynchronous copy of ", bytes, " bytes is not aligned"));
  }
  Runner& runner = OwnRunner();
  if (runner.random() % 2 == 0) {
    memcpy(dst, src, bytes);
  } else {
    runner.current->open.push_back({dst, src, bytes});
  }
}

void EndGroup() {
  Fiber* self = OwnRunner().current;
  self->groups.push_back(std::exchange(self->open, {}));
}

void FinishGroups(int pending) {
  auto& groups = OwnRunner().current->groups;
  for (; static_cast<int>(groups.size()) > pending; groups.pop_front()) {
    for (const Copy& copy : groups.front()) memcpy(copy.dst, copy.src, copy.bytes);
  }
}

void Run(dim3 grid, dim3 block, size_t shared, const std::function<void()>& thread) {
  Runner& runner = OwnRunner();
  runner.count = block.x * block.y * block.z;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  if (runner.count < 1 || runner.count > kMaxThreads || blocks < 1 || grid.y > 65535 || grid.z > 65535 ||
      shared > kMaxShared) {
    throw Error(Error::Kind::kInternal,
                Concat("cannot launch a kernel of ", grid.x, "x", grid.y, "x", grid.z, " blocks of ", runner.count,
                       " threads and ", shared, " bytes of shared memory: invalid configuration"));
  }
  while (runner.fibers.size() < runner.count) runner.fibers.push_back(std::make_unique<Fiber>());
  runner.body = &thread;
  runner.watched = WatchedThread();
  block_dimensions = block;
  grid_dimensions = grid;
  std::vector<float4> memory((shared + sizeof(float4) - 1) / sizeof(float4));  // exact size, so that ASan can check it
  dynamic_shared = reinterpret_cast<char*>(memory.data());
  std::vector<uint64_t> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), runner.random);
  for (uint64_t b : order) {
    block_index = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                   static_cast<unsigned>(b / grid.x / grid.y)};
    if (shared > 0) memset(dynamic_shared, 0xff, shared);
    RunBlock(&runner);
  }
}

}  // namespace neuroevo::cuda::emulation
