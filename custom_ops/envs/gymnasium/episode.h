// An episode of a slot, in a worker; if that fails, another one plays it again up to where it was.
#ifndef NEUROEVO_ENVS_GYMNASIUM_EPISODE_H_
#define NEUROEVO_ENVS_GYMNASIUM_EPISODE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "envs/env.h"
#include "envs/gymnasium/protocol.h"
#include "envs/gymnasium/worker_place.h"

namespace neuroevo {

// It is played again by its seed and the actions so far, so that nobody else need know of it: networks, their states,
// and what is recorded of the episode stay where they are. That everything follows from these is what the family asks
// of environments; whether it did is known from a checksum of all that the environment has answered.
//
// A worker fails if it dies, does not answer in time, or says that its environment raised something. All slots in its
// place then lose their episodes; those that did not ask it for anything play theirs again when they next do.
class GymnasiumEpisode {
 public:
  // retries: how often an episode is played again before what its worker failed of is thrown.
  GymnasiumEpisode(WorkerPlace* place, const EnvSpec& spec, int64_t slot, int64_t retries);
  GymnasiumEpisode(const GymnasiumEpisode&) = delete;
  GymnasiumEpisode& operator=(const GymnasiumEpisode&) = delete;

  // Throw what a worker fails of. After a failure they have no result, and the episode is over.
  GymnasiumResult Reset(uint64_t seed);
  GymnasiumResult Step(const void* action);
  void Render(uint8_t* rgb);

  // What came with the last result.
  const std::vector<char>& observation() const { return observation_; }
  const std::vector<double>& behavior() const { return behavior_; }
  // How often this episode was played again.
  int64_t retries() const { return retries_; }
  // Why it cannot go on: played again, it went another way; "" where it can.
  const std::string& failure() const { return failure_; }

 private:
  // Has a worker answer, once it is where the episode is; another one if it fails.
  void Ask(const std::function<void(GymnasiumWorker*)>& ask);
  // Brings a new worker to where the episode is; sets failure_ if it comes to somewhere else.
  void CatchUp(GymnasiumWorker* worker);
  // A reset, or the step of this index.
  GymnasiumResult AskForReset(GymnasiumWorker* worker);
  GymnasiumResult AskForStep(GymnasiumWorker* worker, int64_t index);
  GymnasiumResult Receive(GymnasiumWorker* worker, const char* doing, const std::string& request);
  void Note(const GymnasiumResult& result);
  void SayAgain(const Error& error) const;

  WorkerPlace* const place_;
  const int64_t slot_, limit_, action_bytes_, render_bytes_;
  int64_t worker_ = -1;  // number of the one that has the episode; -1: none
  uint64_t seed_ = 0;
  std::vector<char> actions_;  // so far, one after another; only the last if there are no retries
  uint64_t answers_ = 0;       // checksum of results and observations so far
  int64_t steps_ = 0, retries_ = 0;
  std::string failure_;
  std::vector<double> behavior_;
  std::vector<char> observation_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_EPISODE_H_
