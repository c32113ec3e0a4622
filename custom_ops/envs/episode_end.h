// Report of an env pool about a finished episode, except for its rewards.
#ifndef NEUROEVO_ENVS_EPISODE_END_H_
#define NEUROEVO_ENVS_EPISODE_END_H_

#include <cstdint>
#include <string>
#include <vector>

namespace neuroevo {

struct EpisodeEnd {
  std::string failure = {};                   // why the episode was aborted; "" if it was not
  int64_t retries = 0;                        // how often the episode was replayed, see Env::Retries
  std::vector<double> observation_sums = {};  // [1 + 2n], see ObservationSums; empty without a normalizer
  std::vector<uint8_t> behavior = {};         // see BehaviorPlan; zeros if the episode failed; empty if not recorded
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_EPISODE_END_H_
