// Plays a queue of episodes without TensorFlow. The TensorFlow graph of a lane must give identical results.
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

// Runner of all lanes of a queue, each in its own thread, which executes the lane's loop: observe, forward, actions,
// step, put, refill, until the queue is closed. A lane that fails closes the queue for all lanes.
//
// The population must match the environment in input size and dtype, float32 for float32 and float64 observations
// (which may be normalized), and in outputs (envs/actions.h); the env pool has one environment per slot. For networks
// with vbn, the reference batch must be set; for recurrent networks, the population must have at least one row per
// slot. Lanes prepare the rows that they fill; the caller must prepare rows that are played in place.
class LaneRunner {
 public:
  // Start the lanes. All three objects must outlive the runner. Throws if they do not match each other.
  LaneRunner(EnvPool* envs, Population* population, EpisodeQueue* queue);
  // Close the queue and wait for the lanes.
  ~LaneRunner();
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;

  // Rethrow the exception of the first lane that failed, if any: one of an environment or of the population.
  void RethrowFailure();

  // Wait for the lanes, which end within a step after the queue is closed; return false if the time elapses first.
  bool WaitForEnd(std::chrono::milliseconds time);

 private:
  void Run(int64_t lane);
  void Stop();

  EnvPool* envs_;
  Population* population_;
  EpisodeQueue* queue_;
  std::mutex mutex_;
  std::condition_variable ended_;  // notified when a lane ends
  int64_t running_ = 0;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

// Run the lanes until `count` results are available, then close the queue. Returns the results in the order in which
// the episodes ended. Rethrows the first exception of a lane, and throws if the queue is closed before.
std::vector<EpisodeResult> RunLanes(EnvPool* envs, Population* population, EpisodeQueue* queue, int64_t count);

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_LANE_RUNNER_H_
