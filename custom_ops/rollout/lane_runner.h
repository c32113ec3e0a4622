// Plays a queue of episodes without TensorFlow: what the TensorFlow graph of a lane must equal.
#ifndef NEUROEVO_ROLLOUT_LANE_RUNNER_H_
#define NEUROEVO_ROLLOUT_LANE_RUNNER_H_

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "envs/env_pool.h"
#include "population/population.h"
#include "rollout/episode_queue.h"

namespace neuroevo {

// Runs every lane of the queue, each in a thread of its own, which works on the lane's jobs: observe, forward, actions,
// step, put, refill, until the queue is closed. A lane that fails closes the queue for the others.
//
// The population must agree with the environment in input size and dtype, float32 for float32 and float64 observations
// (which may be normalized), and in outputs (envs/actions.h); there is an environment per slot. Where networks have vbn
// it has its reference batch, and where they are recurrent as many rows as there are slots; lanes prepare the rows that
// they fill, and rows that are played in place are prepared.
class LaneRunner {
 public:
  // Starts the lanes. The three must live as long as this. Throws if they do not fit each other.
  LaneRunner(EnvPool* envs, Population* population, EpisodeQueue* queue);
  // Closes the queue and waits for the lanes.
  ~LaneRunner();
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;

  // Throws what the first lane failed of, if one has failed: an exception of an environment or of the population.
  void RethrowFailure();

  // Waits for the lanes, which end a step after the queue was closed; false if they have not after this time.
  bool WaitForEnd(std::chrono::milliseconds time);

 private:
  void Run(int64_t lane);
  void Stop();

  EnvPool* envs_;
  Population* population_;
  EpisodeQueue* queue_;
  std::mutex mutex_;
  std::condition_variable ended_;  // a lane
  int64_t running_ = 0;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

// Runs the lanes until `count` results are there. Returns them in the order in which the episodes ended. Rethrows the
// first exception of a lane, and throws if the queue is closed before. The queue is closed afterwards.
std::vector<EpisodeResult> RunLanes(EnvPool* envs, Population* population, EpisodeQueue* queue, int64_t count);

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_LANE_RUNNER_H_
