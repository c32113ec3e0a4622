// Plays a queue of episodes without TensorFlow: the oracle that the TensorFlow graph must equal.
#ifndef NEUROEVO_ROLLOUT_LANE_RUNNER_H_
#define NEUROEVO_ROLLOUT_LANE_RUNNER_H_

#include <vector>

#include "envs/env_pool.h"
#include "population/population.h"
#include "rollout/episode_queue.h"

namespace neuroevo {

// Runs every lane of the queue, each in a thread of its own, which works on the lane's jobs: observe, forward, actions,
// step, put, refill, until `count` results are there. Returns them in the order in which the episodes ended. Rethrows
// the first exception of an environment or of the population, and throws if the queue is closed before. The queue is
// closed afterwards.
// The population must agree with the environment in input size and dtype, float32 for float32 and float64 observations
// (which may be normalized), and in outputs (envs/actions.h); there is an environment per slot. Where networks have vbn
// it has its reference batch; lanes prepare the rows that they fill, and rows that are played in place are prepared.
std::vector<EpisodeResult> RunLanes(EnvPool* envs, Population* population, EpisodeQueue* queue, int64_t count);

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_LANE_RUNNER_H_
