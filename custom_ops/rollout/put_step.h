// Final part of a lane's step, shared by the lane runner and the TensorFlow graph.
#ifndef NEUROEVO_ROLLOUT_PUT_STEP_H_
#define NEUROEVO_ROLLOUT_PUT_STEP_H_

#include <cstdint>
#include <vector>

#include "envs/env_pool.h"
#include "rollout/episode_queue.h"

namespace neuroevo {

// Record a step of the lane's slots: call EpisodeQueue::Put with the env pool's reports on the finished episodes.
// rewards, dones: [K], as written by EnvPool::Step.
EpisodeQueue::PutResult PutStep(EpisodeQueue* queue, EnvPool* envs, int64_t lane, const std::vector<int64_t>& slots,
                                const double* rewards, const bool* dones);

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_PUT_STEP_H_
