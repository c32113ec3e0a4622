// What Gymnasium's interface reports about an episode beside what env.h has, for vector_env.h. An environment may
// implement it too: of one that does not, an episode that is over counts as terminated, and there are no infos.
#ifndef NEUROEVO_ENVS_EPISODE_INFO_H_
#define NEUROEVO_ENVS_EPISODE_INFO_H_

#include <cstdint>
#include <string>
#include <vector>

namespace neuroevo {

class EpisodeInfo {
 public:
  virtual ~EpisodeInfo() = default;

  // How the last step ended the episode, both if it did so in two ways at once; neither while the episode goes on.
  struct End {
    bool terminated = false;  // by what happened in it
    bool truncated = false;   // by the cut-off
  };
  virtual End HowItEnded() const = 0;

  // Numbers that describe the moment: what they are called, the same for all environments of a family, and themselves.
  virtual std::vector<std::string> InfoNames() const { return {}; }
  virtual void Infos(int64_t* /*out*/) const {}
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_EPISODE_INFO_H_
