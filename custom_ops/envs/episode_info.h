// Optional interface of an environment for the parts of Gymnasium's API that env.h lacks, used by vector_env.h. For
// environments that do not implement it, finished episodes count as terminated and the infos are empty.
#ifndef NEUROEVO_ENVS_EPISODE_INFO_H_
#define NEUROEVO_ENVS_EPISODE_INFO_H_

#include <cstdint>
#include <string>
#include <vector>

namespace neuroevo {

class EpisodeInfo {
 public:
  virtual ~EpisodeInfo() = default;

  // How the last step ended the episode; both flags may be set, and neither is while the episode continues.
  struct End {
    bool terminated = false;  // a terminal state was reached
    bool truncated = false;   // the time limit was reached
  };
  virtual End HowItEnded() const = 0;

  // Names, equal for all environments of a family, and current values of the infos.
  virtual std::vector<std::string> InfoNames() const { return {}; }
  virtual void Infos(int64_t* /*out*/) const {}
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_EPISODE_INFO_H_
