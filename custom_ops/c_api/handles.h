// Handle tables of the C interfaces, and helpers for array arguments.
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

// Return a new handle number, unique over all kinds of handles.
uintptr_t NextHandle();

// Table of the objects of one kind. A handle is a number that is never reused, so that using a freed handle is an error
// rather than a dangling pointer. A call shares ownership of its objects: an object freed during a call is destroyed
// when the last call on it returns. Forks never access a parent process's objects, whose threads do not exist there.
template <class Handle, class T>
class Handles {
 public:
  explicit Handles(const char* what) : what_(what) {}  // what: name of the kind, for messages

  Handle* Add(std::shared_ptr<T> object) {
    auto* const handle = reinterpret_cast<Handle*>(NextHandle());
    const ProcessLock lock(mutex_);
    objects_.emplace(handle, Entry{Forks(), std::move(object)});
    return handle;
  }

  // Look up a handle. Throws if it is null, freed or of another kind. Returns null for an object of a parent process.
  std::shared_ptr<T> Find(Handle* handle) {
    if (handle == nullptr) ThrowInvalid("the ", what_, " is null");
    const ProcessLock lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) ThrowInvalid("the ", what_, " was freed, or the handle is of another kind");
    return found->second.forks == Forks() ? found->second.object : nullptr;
  }

  // The same, but also throws for an object of a parent process.
  std::shared_ptr<T> Get(Handle* handle) {
    std::shared_ptr<T> object = Find(handle);
    if (object == nullptr) ThrowInvalid("the ", what_, " belongs to the process that this one was forked from");
    return object;
  }

  // Remove the handle and return its object, or null if the handle was already freed.
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
    int64_t forks;  // Forks() at creation
    std::shared_ptr<T> object;
  };

  const char* const what_;
  ProcessMutex mutex_;
  std::unordered_map<Handle*, Entry> objects_;
};

// Never destroyed, since at exit threads may still be in calls. Created when the library is loaded, so that _free
// allocates nothing.
extern Handles<neuroevo_env_pool, EnvPool>& env_pools;
extern Handles<neuroevo_population, Population>& populations;

inline std::shared_ptr<EnvPool> Object(neuroevo_env_pool* pool) { return env_pools.Get(pool); }
inline std::shared_ptr<Population> Object(neuroevo_population* population) { return populations.Get(population); }

// Throw if the array is null and n, the number of values to read or write, is positive.
inline void CheckArray(const char* what, const void* array, int64_t n) {
  if (n > 0 && array == nullptr) ThrowInvalid(what, " is null, expected ", n, " entries");
}

// Return a copy of n values. Throws for a negative n, and for null unless n is 0.
template <class T>
std::vector<T> Vector(const T* values, int64_t n) {
  if (n < 0) ThrowInvalid("a length is ", n, ", expected 0 or more");
  if (n > 0 && values == nullptr) ThrowInvalid("an array is null, expected ", n, " values");
  return std::vector<T>(values, values + n);
}

// The same, but return an empty vector for null.
template <class T>
std::vector<T> Optional(const T* values, int64_t n) {
  return values == nullptr ? std::vector<T>() : Vector(values, n);
}

}  // namespace neuroevo

#endif  // NEUROEVO_C_API_HANDLES_H_
