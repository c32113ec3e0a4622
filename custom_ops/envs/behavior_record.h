// Recording of an episode's behavior for novelty search: at the end of the episode, or as a trajectory.
#ifndef NEUROEVO_ENVS_BEHAVIOR_RECORD_H_
#define NEUROEVO_ENVS_BEHAVIOR_RECORD_H_

#include <cstdint>
#include <vector>

#include "envs/env.h"

namespace neuroevo {

// Settings of the recording. every = 0: one sample, the behavior at the end of the episode. every > 0: a trajectory,
// the behavior after steps every, 2 * every, ..., `samples` in total; samples after the end repeat the last state.
struct BehaviorPlan {
  static constexpr int64_t kMaxBytes = 1 << 24;  // per episode: more than the console's RAM at each of 100,000 steps

  int64_t every = 0;
  int64_t samples = 0;  // 0: nothing is recorded
  int64_t size = 0;     // bytes per sample

  BehaviorPlan() = default;
  // Throws for an environment without behavior, every < 0, samples < 1, and more than kMaxBytes per episode.
  BehaviorPlan(const EnvSpec& spec, int64_t every, int64_t samples);

  bool records() const { return samples > 0; }
  int64_t bytes() const { return samples * size; }
};

// Behavior record of a slot's current episode.
class BehaviorRecord {
 public:
  void Start(const BehaviorPlan& plan);

  // Add a sample if due; call after each step that does not end the episode. Allocates nothing.
  void Add(const BehaviorPlan& plan, const Env& env) {
    if (++steps_ % plan.every == 0 && written_ < plan.samples) Write(plan, env);
  }

  // Return all samples at the end of the episode. Zeros if it failed, since the state of a failed simulation is
  // arbitrary.
  std::vector<uint8_t> Finish(const BehaviorPlan& plan, const Env& env, bool failed);

 private:
  void Write(const BehaviorPlan& plan, const Env& env);

  std::vector<uint8_t> samples_;
  int64_t written_ = 0, steps_ = 0;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_BEHAVIOR_RECORD_H_
