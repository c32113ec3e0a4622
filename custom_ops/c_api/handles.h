// The objects behind the handles of the C interfaces, and how arrays come in.
#ifndef NEUROEVO_C_API_HANDLES_H_
#define NEUROEVO_C_API_HANDLES_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/fork.h"
#include "envs/env_pool.h"
#include "population/population.h"

namespace neuroevo {

// A number for a handle, which no other handle of any kind has.
uintptr_t NextHandle();

// The objects of one kind. A handle is a number that is never reused, so that a freed one is an error and not a wild
// pointer. A call holds what it works on: an object that is freed meanwhile is destroyed when the last call on it ends.
// The objects of a parent process stay untouched in its forks: their threads do not exist there.
template <class Handle, class T>
class Handles {
 public:
  explicit Handles(const char* what) : what_(what) {}  // what: the kind, for messages

  Handle* Add(std::shared_ptr<T> object) {
    auto* const handle = reinterpret_cast<Handle*>(NextHandle());
    const ProcessLock lock(mutex_);
    objects_.emplace(handle, Entry{Forks(), std::move(object)});
    return handle;
  }

  // Throws for a handle that is null, freed or not of this kind. Null for one of a parent process.
  std::shared_ptr<T> Find(Handle* handle) {
    if (handle == nullptr) ThrowInvalid("the ", what_, " is null");
    const ProcessLock lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) ThrowInvalid("the ", what_, " was freed, or the handle is of another kind");
    return found->second.forks == Forks() ? found->second.object : nullptr;
  }

  // The same, but throws for one of a parent process, too.
  std::shared_ptr<T> Get(Handle* handle) {
    std::shared_ptr<T> object = Find(handle);
    if (object == nullptr) ThrowInvalid("the ", what_, " belongs to the process that this one was forked from");
    return object;
  }

  // Ends the handle and returns its object, or null if the handle was freed before.
  std::shared_ptr<T> Take(Handle* handle) noexcept {
    const ProcessLock lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end() || found->second.forks != Forks()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second.object);
    objects_.erase(found);
    return object;
  }

 private:
  struct Entry {
    int64_t forks;  // when it was made
    std::shared_ptr<T> object;
  };

  const char* const what_;
  ProcessMutex mutex_;
  std::unordered_map<Handle*, Entry> objects_;
};

// Never destroyed: at exit, threads may still be in calls. Made when the library is loaded, so that _free needs no
// memory.
extern Handles<neuroevo_env_pool, EnvPool>& env_pools;
extern Handles<neuroevo_population, Population>& populations;

inline std::shared_ptr<EnvPool> Object(neuroevo_env_pool* pool) { return env_pools.Get(pool); }
inline std::shared_ptr<Population> Object(neuroevo_population* population) { return populations.Get(population); }

// Throws for null where n values are to be read or written.
inline void CheckArray(const char* what, const void* array, int64_t n) {
  if (n > 0 && array == nullptr) ThrowInvalid(what, " is null, expected ", n, " entries");
}

// A copy of n values. Throws for a negative n, and for null unless n is 0.
template <class T>
std::vector<T> Vector(const T* values, int64_t n) {
  if (n < 0) ThrowInvalid("a length is ", n, ", expected 0 or more");
  if (n > 0 && values == nullptr) ThrowInvalid("an array is null, expected ", n, " values");
  return std::vector<T>(values, values + n);
}

// The same, but empty for null.
template <class T>
std::vector<T> Optional(const T* values, int64_t n) {
  return values == nullptr ? std::vector<T>() : Vector(values, n);
}

}  // namespace neuroevo

#endif  // NEUROEVO_C_API_HANDLES_H_
