// N environments of one family as Gymnasium's vector interface has them: all are stepped by one call, and one whose
// episode is over begins the next by itself. Everything an environment does in a call, its observation included, is
// done in one task of the thread pool.
#ifndef NEUROEVO_ENVS_VECTOR_ENV_H_
#define NEUROEVO_ENVS_VECTOR_ENV_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "envs/env.h"
#include "envs/episode_info.h"

namespace neuroevo {

class VectorEnv {
 public:
  // When an episode that is over gives way to the next one: at the step after it, whose action is ignored; at once, so
  // that the step shows the next one's first observation; or at a call of Reset.
  enum class Autoreset { kNextStep, kSameStep, kDisabled };

  // Where a call writes, for I infos. The last two are written with kSameStep alone, where a step ended an episode.
  struct Output {
    void* observations;        // [N, *observation_shape]
    double* rewards;           // [N]
    bool* terminations;        // [N]
    bool* truncations;         // [N]
    bool* failures;            // [N]: the step ended an episode because its simulation failed; Failure() says why
    int64_t* infos;            // [I, N]
    void* final_observations;  // [N, *observation_shape]
    int64_t* final_infos;      // [I, N]
  };

  // max_steps: cut-off of the episodes, 0: the family's own. Throws for an unknown family, a bad option, num_envs
  // outside [1, EnvPool::kMaxSlots], or max_steps outside [0, kMaxSteps].
  static constexpr int64_t kMaxSteps = 1'000'000'000;
  VectorEnv(const std::string& family, const EnvOptions& options, int64_t num_envs, Autoreset autoreset,
            int64_t max_steps, std::shared_ptr<ThreadPool> pool);

  const EnvSpec& spec() const { return factory_->spec(); }
  Autoreset autoreset() const { return autoreset_; }
  int64_t num_envs() const { return static_cast<int64_t>(slots_.size()); }
  const std::vector<std::string>& info_names() const { return info_names_; }

  // One call at a time: another one meanwhile is an error. A call that throws before it begins has changed nothing.
  // After an exception of an environment, all need a reset.

  // Begins an episode wherever mask [N] says so. An environment with a seed (seeded [N], seeds [N]) starts anew from
  // it: its first episode has that very seed, the next ones EpisodeSeed(seed, 1), ... Without, it goes on to its next
  // episode. Throws if an environment has never had a seed or is left without an episode. Writes observations and infos
  // of all, and zeros for the rest.
  void Reset(const bool* mask, const bool* seeded, const uint64_t* seeds, const Output& out);

  // actions: int64 [N] in [0, num_actions), or float32 [N, num_actions], finite. Throws for others, and with kDisabled
  // where an episode is over.
  void Step(const void* actions, const Output& out);

  void Render(uint8_t* out);  // N screens; throws where there are none

  // Why the last episode that ended was broken off; "" where it was not.
  std::string Failure(int64_t index);

  // The seed of the episode after `episode` others: random numbers below 2^63, and for the first the seed itself.
  static uint64_t EpisodeSeed(uint64_t seed, uint64_t episode);

 private:
  struct Slot {
    std::unique_ptr<Env> env;
    const EpisodeInfo* info = nullptr;  // of env, if it implements that
    uint64_t seed = 0, episode = 0;
    bool has_seed = false;
    bool started = false;  // in an episode or at its end
    bool over = false;
    std::string failure;
  };

  class Hold;               // marks the object as in use for as long as it lives
  int64_t PerTask() const;  // environments that a task steps and observes
  void ForEach(const char* what, int64_t per_task, const std::function<void(int64_t, Slot&)>& body);
  void CheckActions(const void* actions) const;
  void Begin(Slot* slot) const;
  void StepOne(int64_t index, const void* action, const Output& out, Slot* slot) const;
  void WriteInfos(const Slot& slot, int64_t index, int64_t* out) const;
  void Observe(const Slot& slot, int64_t index, void* out) const;

  const Autoreset autoreset_;
  std::unique_ptr<EnvFactory> factory_;
  int64_t max_frames_;
  std::vector<Slot> slots_;
  std::vector<std::string> info_names_;
  std::shared_ptr<ThreadPool> pool_;
  std::atomic<bool> busy_{false};
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_VECTOR_ENV_H_
