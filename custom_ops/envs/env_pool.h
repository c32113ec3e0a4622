// S environments of one family, reset, stepped and observed on a thread pool.
#ifndef NEUROEVO_ENVS_ENV_POOL_H_
#define NEUROEVO_ENVS_ENV_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
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
  static constexpr int64_t kMaxSlots = 1 << 16;  // more emulators than fit in any machine's memory

  // Create all environments. Throws for an unknown family, an invalid option, or slots outside [1, kMaxSlots].
  EnvPool(const std::string& family, const EnvOptions& options, int64_t slots, std::shared_ptr<ThreadPool> pool);

  const EnvSpec& spec() const { return factory_->spec(); }
  int64_t slots() const { return static_cast<int64_t>(slots_.size()); }

  // Each call first validates its arguments; then it runs on the thread pool and returns when all slots are done, or
  // throws the exception of an environment. It is an error if slots repeat in a call or are used by two calls at once.
  // A slot must be reset before its first step and after each episode.
  // normalizers: [K], numbers set by SetNormalizer, or -1; or empty: -1 for all.
  void Reset(const std::vector<int64_t>& slots, const std::vector<uint64_t>& seeds,
             const std::vector<int64_t>& max_frames, const std::vector<int64_t>& normalizers = {});

  // Convert network outputs [k, width] to actions: int32 [k], or float32 [k, num_actions] (actions.h). Throws for a
  // negative k and an invalid width.
  void Actions(const float* outputs, int64_t k, int64_t width, void* actions) const;

  // actions: int32 [K], or float32 [K, num_actions]; writes rewards [K] and dones [K]. A non-finite component ends its
  // slot's episode with reward 0 and a failure, whereas an action index out of range is an error of the call.
  // truncations: [K], whether the episode was truncated but not terminated; null: not written.
  void Step(const std::vector<int64_t>& slots, const void* actions, double* rewards, bool* dones,
            bool* truncations = nullptr);

  // Write K observations, behaviors, screens or states consecutively. The last three throw if the environment does not
  // support them.
  void Observe(const std::vector<int64_t>& slots, void* out);
  void Behavior(const std::vector<int64_t>& slots, void* out);
  void Render(const std::vector<int64_t>& slots, uint8_t* out);
  void State(const std::vector<int64_t>& slots, double* out);

  // Write K observations of n values as float32 [K, n], normalized if the slot's episode has a normalizer; such an
  // episode's observations are added to its sums. Throws unless observations are float32 or float64.
  void ObserveNormalized(const std::vector<int64_t>& slots, float* out);

  // Return the keys of the slots' states, [K], of a keyed environment. Nothing for a slot whose episode's end depends
  // on earlier steps, too: with a normalizer, or with a trajectory as behavior.
  std::vector<std::optional<StateKey>> Keys(const std::vector<int64_t>& slots);

  // mean, std: [n], for the values of an observation. Throws if the number is set to different values. A dropped number
  // may no longer be passed to Reset; episodes with its normalizer keep it.
  void SetNormalizer(int64_t number, std::vector<double> mean, std::vector<double> std);
  void DropNormalizers(const std::vector<int64_t>& numbers) { normalizers_.Drop(numbers); }

  // Record the behavior of every episode, as BehaviorPlan describes, for TakeEnds. Throws like BehaviorPlan, and if a
  // slot has already been reset.
  void RecordBehaviors(int64_t every, int64_t samples);

  // Return why the slot's episode was aborted, a non-finite action or a failed simulation; "" if it was not.
  std::string Failure(int64_t slot);

  // Return the ends of the finished episodes of these slots, [K] in the slots' order. Each can be taken once, between
  // the Step that finished the episode and the slot's next Reset; throws for a slot without an untaken end.
  std::vector<EpisodeEnd> TakeEnds(const std::vector<int64_t>& slots);

 private:
  struct Slot {
    std::unique_ptr<Env> env;
    const EpisodeInfo* info = nullptr;  // the environment's EpisodeInfo interface, if implemented
    std::atomic<bool> busy{false};
    bool started = false;  // the last reset succeeded
    bool live = false;     // reset, and not done since
    bool ended = false;    // done, and the end was not taken yet
    EpisodeEnd end;
    std::shared_ptr<const Normalizer> normalizer;  // null: not normalized
    ObservationSums sums;                          // used with a normalizer
    std::vector<double> observation;               // buffer for a raw observation
    std::string failure;                           // caused by an action; Env::Failure() reports the simulation's
    BehaviorRecord behaviors;                      // used if behaviors are recorded
  };

  // Scope guard that marks either all slots as busy or, on an error, no slot.
  class Hold;
  // Validate each slot with `check`, then run body(k, slot) for every k on the pool, per_task slots per task.
  template <class Check, class Body>
  void Run(const std::vector<int64_t>& slots, Check check, int64_t per_task, Body body);
  // Call write(env, out + k * bytes) for every k.
  template <class Write>
  void CopyOut(const char* what, const std::vector<int64_t>& slots, void* out, int64_t bytes, Write write,
               int64_t per_task);
  // Return the number of values per observation; throws unless observations are float32 or float64.
  int64_t ObservationSize() const;
  template <class T>
  static void ShowNormalized(Slot* slot, int64_t n, float* out);
  static std::string FailureOf(const Slot& slot);
  void NoteEnd(Slot* slot) const;

  std::unique_ptr<EnvFactory> factory_;
  std::vector<Slot> slots_;
  std::shared_ptr<ThreadPool> pool_;
  Normalizers normalizers_;
  BehaviorPlan plan_;  // written while all slots are held, so that holding any slot suffices to read it
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ENV_POOL_H_
