// Helpers for C interface calls that may run out of memory (native/allocations.h), and handles. Include in one test
// file.
#ifndef NEUROEVO_TESTS_NATIVE_C_API_FAULTS_H_
#define NEUROEVO_TESTS_NATIVE_C_API_FAULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "c_api/neuroevo.h"
#include "c_api/rollout.h"
#include "c_api/vector_env.h"
#include "native/allocations.h"
#include "native/check.h"

namespace neuroevo {

inline constexpr int64_t kTime = 60'000;  // timeout in ms of operations that normally take milliseconds

using Int64s = std::vector<int64_t>;

// Return whether a call succeeds; a failure must report that memory ran out.
template <class Call>
bool Succeeds(Call call) {
  const int code = allocations::Counted(call);
  if (code == NEUROEVO_OK) return true;
  CHECK_EQ(std::string(neuroevo_last_error()), "out of memory");
  CHECK_EQ(code, NEUROEVO_INTERNAL);
  return false;
}

// Call once, and again if the call fails.
template <class Call>
void Do(Call call) {
  if (!Succeeds(call)) CHECK(Succeeds(call));
}

// Owner of a handle, freed in the destructor.
template <class Object, void (*kFree)(Object*)>
class Handle {
 public:
  Handle() = default;
  ~Handle() {
    allocations::Counted([this] { kFree(object_); });
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Object** place() { return &object_; }
  operator Object*() const { return object_; }

 private:
  Object* object_ = nullptr;
};
using PoolHandle = Handle<neuroevo_env_pool, neuroevo_env_pool_free>;
using PopulationHandle = Handle<neuroevo_population, neuroevo_population_free>;
using RolloutHandle = Handle<neuroevo_rollout, neuroevo_rollout_free>;
using VectorEnvHandle = Handle<neuroevo_vector_env, neuroevo_vector_free>;

// Replace the process's pool by a new one.
inline void NewThreads() {
  for (int32_t threads : {1, 3}) Do([&] { return neuroevo_set_threads(threads); });
}

}  // namespace neuroevo

#endif  // NEUROEVO_TESTS_NATIVE_C_API_FAULTS_H_
