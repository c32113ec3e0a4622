// What an env pool reports about an episode that has ended, besides its rewards.
#ifndef NEUROEVO_ENVS_EPISODE_END_H_
#define NEUROEVO_ENVS_EPISODE_END_H_

#include <cstdint>
#include <string>
#include <vector>

namespace neuroevo {

struct EpisodeEnd {
  std::string failure = {};                   // why the episode was broken off; "" where it was not
  int64_t retries = 0;                        // how often it was played again, see Env::Retries
  std::vector<double> observation_sums = {};  // [1 + 2n], see ObservationSums; empty without a normalizer
  std::vector<uint8_t> behavior = {};         // see BehaviorPlan; zeros where it failed; empty if none are recorded
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_EPISODE_END_H_
