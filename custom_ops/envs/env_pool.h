// S environments of one family, reset, stepped and observed on a thread pool.
#ifndef NEUROEVO_ENVS_ENV_POOL_H_
#define NEUROEVO_ENVS_ENV_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "envs/behavior_record.h"
#include "envs/env.h"
#include "envs/episode_end.h"
#include "envs/episode_info.h"
#include "envs/normalizer.h"

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
  // normalizers: [K], numbers given to SetNormalizer, or -1; or empty: -1 for all.
  void Reset(const std::vector<int64_t>& slots, const std::vector<uint64_t>& seeds,
             const std::vector<int64_t>& max_frames, const std::vector<int64_t>& normalizers = {});

  // What the environments take, from networks' outputs [k, width]: int32 [k], or float32 [k, num_actions] (actions.h).
  // Throws for a negative k, and a width that does not fit.
  void Actions(const float* outputs, int64_t k, int64_t width, void* actions) const;

  // actions: int32 [K], or float32 [K, num_actions]; writes rewards [K] and dones [K]. A number that is not finite ends
  // its slot's episode, with reward 0 and a failure, where a wrong index is an error of the call.
  // truncations: [K] too, whether the cut-off alone ended the episode; null: not written.
  void Step(const std::vector<int64_t>& slots, const void* actions, double* rewards, bool* dones,
            bool* truncations = nullptr);

  // Write K observations, behaviors, screens or states one after another. All but the first throw where the
  // environment has none.
  void Observe(const std::vector<int64_t>& slots, void* out);
  void Behavior(const std::vector<int64_t>& slots, void* out);
  void Render(const std::vector<int64_t>& slots, uint8_t* out);
  void State(const std::vector<int64_t>& slots, double* out);

  // Writes K observations of n values as float32 [K, n], normalized where the slot's episode has a normalizer. What is
  // shown of such an episode is added to its sums. Throws unless observations are float32 or float64.
  void ObserveNormalized(const std::vector<int64_t>& slots, float* out);

  // mean, std: [n], of the values of an observation. Throws for a number that is in use for other values. A number that
  // is dropped may no longer be given to Reset; episodes that have its normalizer keep it.
  void SetNormalizer(int64_t number, std::vector<double> mean, std::vector<double> std);
  void DropNormalizers(const std::vector<int64_t>& numbers) { normalizers_.Drop(numbers); }

  // Records the behavior of every episode, as BehaviorPlan describes, for TakeEnds. Throws as that does, and once a
  // slot has been reset.
  void RecordBehaviors(int64_t every, int64_t samples);

  // Why the slot's episode was broken off, where an action was not finite or its simulation failed; "" where not.
  std::string Failure(int64_t slot);

  // The ends of the episodes that have ended in these slots, [K] in their order. Each can be taken once, from the
  // return of the Step that ended it until the slot's next Reset; throws for a slot that has none to take.
  std::vector<EpisodeEnd> TakeEnds(const std::vector<int64_t>& slots);

 private:
  struct Slot {
    std::unique_ptr<Env> env;
    const EpisodeInfo* info = nullptr;  // of env, if it implements that
    std::atomic<bool> busy{false};
    bool started = false;  // its last reset succeeded
    bool live = false;     // reset, and not done since
    bool ended = false;    // done, and `end` was not taken since
    EpisodeEnd end;
    std::shared_ptr<const Normalizer> normalizer;  // null: none
    ObservationSums sums;                          // with a normalizer
    std::vector<double> observation;               // room for a raw one
    std::string failure;                           // of an action; the environment knows its own
    BehaviorRecord behaviors;                      // if they are recorded
  };

  // Marks the slots as busy for as long as it lives; all or none.
  class Hold;
  // Checks with `check`, runs body(k, slot) for every k on the pool, per_task of them in a task.
  template <class Check, class Body>
  void Run(const std::vector<int64_t>& slots, Check check, int64_t per_task, Body body);
  // Calls write(env, out + k * bytes) for every k.
  template <class Write>
  void CopyOut(const char* what, const std::vector<int64_t>& slots, void* out, int64_t bytes, Write write,
               int64_t per_task);
  // The values of an observation, for what needs them to be float32 or float64; else throws.
  int64_t ObservationSize() const;
  template <class T>
  static void ShowNormalized(Slot* slot, int64_t n, float* out);
  static std::string FailureOf(const Slot& slot);
  void NoteEnd(Slot* slot) const;

  std::unique_ptr<EnvFactory> factory_;
  std::vector<Slot> slots_;
  std::shared_ptr<ThreadPool> pool_;
  Normalizers normalizers_;
  BehaviorPlan plan_;  // written while all slots are held, so that any held slot is enough to read it
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ENV_POOL_H_
