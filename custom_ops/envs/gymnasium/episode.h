// Episode of a slot that runs in a worker; if the worker fails, another worker replays the episode up to that point.
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

// The replay uses the episode's seed and its actions so far and is transparent to callers: networks, their states and
// the episode's records are not affected. The family requires that environments are deterministic given these; a
// checksum of all of the environment's replies verifies it.
//
// A worker fails if it dies, does not reply in time, or reports an exception of its environment. All slots of its place
// then lose their episodes; each other slot replays its episode at its next request.
class GymnasiumEpisode {
 public:
  // retries: how often an episode is replayed before the worker's error is thrown.
  GymnasiumEpisode(WorkerPlace* place, const EnvSpec& spec, int64_t slot, int64_t retries);
  GymnasiumEpisode(const GymnasiumEpisode&) = delete;
  GymnasiumEpisode& operator=(const GymnasiumEpisode&) = delete;

  // Throw a worker's error. If failure() is set, they return no result, and the episode is over.
  GymnasiumResult Reset(uint64_t seed);
  GymnasiumResult Step(const void* action);
  void Render(uint8_t* rgb);

  // The observation of the last result.
  const std::vector<char>& observation() const { return observation_; }
  const std::vector<double>& behavior() const { return behavior_; }
  // How often this episode was replayed.
  int64_t retries() const { return retries_; }
  // Why the episode cannot continue: its replay gave different results; "" if it can.
  const std::string& failure() const { return failure_; }

 private:
  // Send a request to a worker after it has caught up with the episode; if the worker fails, retry with another worker.
  void Ask(const std::function<void(GymnasiumWorker*)>& ask);
  // Replay the episode in a new worker; sets failure_ if the results differ.
  void CatchUp(GymnasiumWorker* worker);
  // Request a reset, or the step with this index.
  GymnasiumResult AskForReset(GymnasiumWorker* worker);
  GymnasiumResult AskForStep(GymnasiumWorker* worker, int64_t index);
  GymnasiumResult Receive(GymnasiumWorker* worker, const char* doing, const std::string& request);
  void Note(const GymnasiumResult& result);
  void SayAgain(const Error& error) const;

  WorkerPlace* const place_;
  const int64_t slot_, limit_, action_bytes_, render_bytes_;
  int64_t worker_ = -1;  // number of the worker that runs the episode; -1: none
  uint64_t seed_ = 0;
  std::vector<char> actions_;  // all actions so far, concatenated; only the last if retries are disabled
  uint64_t answers_ = 0;       // checksum of results and observations so far
  int64_t steps_ = 0, retries_ = 0;
  std::string failure_;
  std::vector<double> behavior_;
  std::vector<char> observation_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_EPISODE_H_
