// Plays a queue of episodes without TensorFlow: the oracle that the TensorFlow graph must equal.
#ifndef NEUROEVO_ROLLOUT_LANE_RUNNER_H_
#define NEUROEVO_ROLLOUT_LANE_RUNNER_H_

#include <vector>

#include "envs/env_pool.h"
#include "population/population.h"
#include "rollout/episode_queue.h"

namespace neuroevo {

// Runs every lane of the queue, each in a thread of its own, which works on the lane's jobs: observe, forward, argmax,
// step, put, refill, until `count` outcomes are there. Returns them in the order in which the episodes ended. Rethrows
// the first exception of an environment or of the population, and throws if the queue is closed before. The queue is
// closed afterwards. The population must agree with the environment in input dtype and size.
// Needs environments with discrete actions, one per slot, and as many of them as the networks have outputs.
std::vector<EpisodeOutcome> RunLanes(EnvPool* envs, Population* population, EpisodeQueue* queue, int64_t count);

// The greedy policy: index of the first maximum of every row of outputs [n, size]. NaN is passed over, as tf.argmax
// does in the graph that must play alike.
void ArgMax(const float* outputs, int64_t n, int64_t size, int32_t* actions);

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_LANE_RUNNER_H_
