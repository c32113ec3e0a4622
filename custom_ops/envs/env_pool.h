// S environments of one family, reset, stepped and observed on a thread pool.
#ifndef NEUROEVO_ENVS_ENV_POOL_H_
#define NEUROEVO_ENVS_ENV_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "envs/behavior_record.h"
#include "envs/env.h"
#include "envs/normalizer.h"

namespace neuroevo {

// Episodes that are over, of which there is more to tell than their rewards.
struct EndedEpisodes {
  std::vector<int64_t> episodes;      // [E], their numbers
  std::vector<std::string> failures;  // [E], why an episode was broken off; "" where it was not
  int64_t moments_size = 0;           // 1 + 2n for observations of n values; 0 if the pool never had a normalizer
  std::vector<double> moments;        // [E, moments_size], see Moments; count 0 where the episode had no normalizer
  int64_t behavior_bytes = 0;         // of an episode; 0 if the pool records none
  std::vector<uint8_t> behaviors;     // [E, behavior_bytes], see RecordBehaviors; zeros where the episode failed
};

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
  // episodes: [K], the caller's numbers of the episodes, -1 for those that TakeEnded is not to tell of. normalizers:
  // [K], numbers given to SetNormalizer, or -1. Either may be empty: -1 for all.
  void Reset(const std::vector<int64_t>& slots, const std::vector<uint64_t>& seeds,
             const std::vector<int64_t>& max_frames, const std::vector<int64_t>& episodes = {},
             const std::vector<int64_t>& normalizers = {});

  // What the environments take, from networks' outputs [k, width]: int32 [k], or float32 [k, num_actions] (actions.h).
  void Actions(const float* outputs, int64_t k, int64_t width, void* actions) const;

  // actions: int32 [K], or float32 [K, num_actions]; writes rewards [K] and dones [K]. A number that is not finite ends
  // its slot's episode, with reward 0 and a failure, where a wrong index is an error of the call.
  void Step(const std::vector<int64_t>& slots, const void* actions, double* rewards, bool* dones);

  // Write K observations, behaviors, screens or states one after another. All but the first throw where the
  // environment has none.
  void Observe(const std::vector<int64_t>& slots, void* out);
  void Behavior(const std::vector<int64_t>& slots, void* out);
  void Render(const std::vector<int64_t>& slots, uint8_t* out);
  void State(const std::vector<int64_t>& slots, double* out);

  // Writes K observations of n values as float32 [K, n], normalized where the slot's episode has a normalizer. What is
  // shown of such an episode is added to its moments. Throws unless observations are float32 or float64.
  void ObserveNormalized(const std::vector<int64_t>& slots, float* out);

  // mean, std: [n], of the values of an observation. Throws for a number that is in use for other values. A number that
  // is dropped may no longer be given to Reset; episodes that have its normalizer keep it.
  void SetNormalizer(int64_t number, std::vector<double> mean, std::vector<double> std);
  void DropNormalizers(const std::vector<int64_t>& numbers) { normalizers_.Drop(numbers); }

  // Records the behavior of every numbered episode, as BehaviorPlan describes, for TakeEnded. Throws as that does,
  // and once a slot has been reset.
  void RecordBehaviors(int64_t every, int64_t samples);

  // Why the slot's episode was broken off, where an action was not finite or its simulation failed; "" where not.
  std::string Failure(int64_t slot);

  // The numbered episodes that have ended since the last call, in any order: all if behaviors are recorded, else those
  // with a failure or a normalizer. An episode is among them before the Step that ended it returns. Those that are
  // reset before their end are not.
  EndedEpisodes TakeEnded();

 private:
  struct Slot {
    std::unique_ptr<Env> env;
    std::atomic<bool> busy{false};
    bool started = false;  // its last reset succeeded
    bool live = false;     // reset, and not done since
    int64_t episode = -1;
    std::shared_ptr<const Normalizer> normalizer;  // null: none
    Moments moments;                               // with a normalizer
    std::vector<double> observation;               // room for a raw one
    std::string failure;                           // of an action; the environment knows its own
    BehaviorRecord behaviors;                      // if they are recorded
  };
  struct Ended {
    int64_t episode;
    std::string failure;
    std::vector<double> moments;     // empty without a normalizer
    std::vector<uint8_t> behaviors;  // empty if none are recorded
  };

  // Marks the slots as busy for as long as it lives; all or none.
  class Hold;
  // Checks with `check`, runs body(k, slot) for every k on the pool, so many per task.
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
  void NoteEnd(Slot* slot);

  std::unique_ptr<EnvFactory> factory_;
  std::vector<Slot> slots_;
  std::shared_ptr<ThreadPool> pool_;
  Normalizers normalizers_;
  std::mutex ended_mutex_;
  std::vector<Ended> ended_;
  int64_t moments_size_ = 0;
  BehaviorPlan plan_;  // written under ended_mutex_ and while all slots are held: either of them is enough to read it
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ENV_POOL_H_
