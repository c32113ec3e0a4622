// N environments of one family with Gymnasium's vector API: one call steps all environments, and finished episodes are
// reset automatically. In each call, one task of the thread pool does all the work of an environment, including its
// observation.
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
  // When the next episode starts after the end of an episode: in the next step, whose action is ignored; in the same
  // step, which then returns the next episode's first observation; or only in a call of Reset.
  enum class Autoreset { kNextStep, kSameStep, kDisabled };

  // Output arrays of a call, for I infos. The last two are written only with kSameStep, for episodes that ended.
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

  // max_steps: time limit of the episodes, 0 for the family's default. Throws for an unknown family, an invalid option,
  // num_envs outside [1, EnvPool::kMaxSlots], or max_steps outside [0, kMaxSteps].
  static constexpr int64_t kMaxSteps = 1'000'000'000;
  VectorEnv(const std::string& family, const EnvOptions& options, int64_t num_envs, Autoreset autoreset,
            int64_t max_steps, std::shared_ptr<ThreadPool> pool);

  const EnvSpec& spec() const { return factory_->spec(); }
  Autoreset autoreset() const { return autoreset_; }
  int64_t num_envs() const { return static_cast<int64_t>(slots_.size()); }
  const std::vector<std::string>& info_names() const { return info_names_; }

  // Concurrent calls are an error. A call that rejects its arguments changes nothing. After an exception of an
  // environment, all environments need a reset.

  // Start an episode in each environment selected by mask [N]. A new seed (seeded [N], seeds [N]) restarts the
  // environment's sequence of episodes: the first episode has this seed, the next ones EpisodeSeed(seed, 1), ...
  // Without a new seed, the sequence continues. Throws if an environment never had a seed or is left without an
  // episode. Writes the observations and infos of all environments, and zeros to the other arrays.
  void Reset(const bool* mask, const bool* seeded, const uint64_t* seeds, const Output& out);

  // actions: int64 [N] in [0, num_actions), or float32 [N, num_actions], finite. Throws for invalid actions, and with
  // kDisabled if an episode is over.
  void Step(const void* actions, const Output& out);

  void Render(uint8_t* out);  // N screens; throws if not supported

  // Return why the environment's last finished episode was aborted; "" if it was not.
  std::string Failure(int64_t index);

  // Return the seed of episode number `episode`: the seed itself for episode 0, else a random number below 2^63.
  static uint64_t EpisodeSeed(uint64_t seed, uint64_t episode);

 private:
  struct Slot {
    std::unique_ptr<Env> env;
    const EpisodeInfo* info = nullptr;  // the environment's EpisodeInfo interface, if implemented
    uint64_t seed = 0, episode = 0;
    bool has_seed = false;
    bool started = false;  // in an episode or at its end
    bool over = false;
    std::string failure;
  };

  class Hold;               // scope guard that marks the object as in use
  int64_t PerTask() const;  // environments per task
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
