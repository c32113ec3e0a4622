// S environments of one family, reset, stepped and observed on a thread pool.
#ifndef NEUROEVO_ENVS_ENV_POOL_H_
#define NEUROEVO_ENVS_ENV_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "envs/env.h"

namespace neuroevo {

class EnvPool {
 public:
  static constexpr int64_t kMaxSlots = 1 << 16;  // more emulators than any machine has memory for

  // Makes all environments. Throws for an unknown family, a bad option, or slots outside [1, kMaxSlots].
  EnvPool(const std::string& family, const EnvOptions& options, int64_t slots, std::shared_ptr<ThreadPool> pool);

  const EnvSpec& spec() const { return factory_->spec(); }
  int64_t slots() const { return static_cast<int64_t>(slots_.size()); }

  // Each call first checks its arguments and throws; then it works on the pool and returns when all is done, or throws
  // the exception of an environment. Slots of one call must differ, and no slot may be in two calls at once: both are
  // errors. A slot must be reset before it is stepped, and again after done.
  void Reset(const std::vector<int64_t>& slots, const std::vector<uint64_t>& seeds,
             const std::vector<int64_t>& max_frames);

  // actions: int32 [K], or float32 [K, num_actions]; writes rewards [K] and dones [K].
  void Step(const std::vector<int64_t>& slots, const void* actions, double* rewards, bool* dones);

  // Write K observations, behaviours, screens or states one after another. All but the first throw where the
  // environment has none.
  void Observe(const std::vector<int64_t>& slots, void* out);
  void Behaviour(const std::vector<int64_t>& slots, void* out);
  void Render(const std::vector<int64_t>& slots, uint8_t* out);
  void State(const std::vector<int64_t>& slots, double* out);

  // Why the slot's episode was broken off, where its simulation failed; "" where it did not.
  std::string Fault(int64_t slot);

 private:
  struct Slot {
    std::unique_ptr<Env> env;
    std::atomic<bool> busy{false};
    bool started = false;  // its last reset succeeded
    bool live = false;     // reset, and not done since
  };

  // Marks the slots as busy for as long as it lives; all or none.
  class Hold;
  // Checks with `check`, runs body(k, slot) for every k on the pool.
  template <class Check, class Body>
  void Run(const std::vector<int64_t>& slots, Check check, int64_t grain, Body body);
  // Calls write(env, out + k * bytes) for every k.
  template <class Write>
  void CopyOut(const char* what, const std::vector<int64_t>& slots, void* out, int64_t bytes, Write write);

  std::unique_ptr<EnvFactory> factory_;
  std::vector<Slot> slots_;
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ENV_POOL_H_
