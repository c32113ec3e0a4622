// What stands behind the handles of the C interfaces, and how arrays come in.
#ifndef NEUROEVO_C_API_HANDLES_H_
#define NEUROEVO_C_API_HANDLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/error.h"
#include "envs/env_pool.h"
#include "population/population.h"

struct neuroevo_env_pool {
  neuroevo::EnvPool object;
};

struct neuroevo_population {
  std::unique_ptr<neuroevo::Population> object;
};

namespace neuroevo {

// What a handle points to. Throws for null.
template <class T>
T& Given(T* handle, const char* what) {
  if (handle == nullptr) ThrowInvalid("the ", what, " is null");
  return *handle;
}
inline EnvPool& Object(neuroevo_env_pool* pool) { return Given(pool, "env pool").object; }
inline Population& Object(neuroevo_population* population) { return *Given(population, "population").object; }

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
