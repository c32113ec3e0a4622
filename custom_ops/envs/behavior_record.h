// What an env pool records of an episode for novelty search: the environment's behavior at its end, or a trajectory.
#ifndef NEUROEVO_ENVS_BEHAVIOR_RECORD_H_
#define NEUROEVO_ENVS_BEHAVIOR_RECORD_H_

#include <cstdint>
#include <vector>

#include "envs/env.h"

namespace neuroevo {

// What is recorded of each episode. With every = 0 one sample, the behavior when it ends. With more a trajectory: the
// behavior after steps every, 2 * every, ..., samples of them; those after the end are the last state once more.
struct BehaviorPlan {
  static constexpr int64_t kMaxBytes = 1 << 24;  // of an episode: more than the console's memory after 100,000 steps

  int64_t every = 0;
  int64_t samples = 0;  // 0: nothing is recorded
  int64_t size = 0;     // bytes of one

  BehaviorPlan() = default;
  // Throws for an environment without behavior, every below 0, samples below 1, and more than kMaxBytes an episode.
  BehaviorPlan(const EnvSpec& spec, int64_t every, int64_t samples);

  bool records() const { return samples > 0; }
  int64_t bytes() const { return samples * size; }
};

// Of one episode, and then of the next.
class BehaviorRecord {
 public:
  void Start(const BehaviorPlan& plan);

  // Of a trajectory: after each step that does not end the episode. Allocates nothing.
  void Add(const BehaviorPlan& plan, const Env& env) {
    if (++steps_ % plan.every == 0 && written_ < plan.samples) Write(plan, env);
  }

  // At the end: all samples. Zeros if the episode failed, as the state of a simulation that fails may be anything.
  std::vector<uint8_t> Finish(const BehaviorPlan& plan, const Env& env, bool failed);

 private:
  void Write(const BehaviorPlan& plan, const Env& env);

  std::vector<uint8_t> samples_;
  int64_t written_ = 0, steps_ = 0;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_BEHAVIOR_RECORD_H_
