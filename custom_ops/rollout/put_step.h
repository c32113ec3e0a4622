// The end of a lane's step, the same in the lane runner and in the TensorFlow graph.
#ifndef NEUROEVO_ROLLOUT_PUT_STEP_H_
#define NEUROEVO_ROLLOUT_PUT_STEP_H_

#include <cstdint>
#include <vector>

#include "envs/env_pool.h"
#include "rollout/episode_queue.h"

namespace neuroevo {

// Books a step that the env pool has made of the lane's slots: EpisodeQueue::Put, with what the pool reports about the
// episodes that are done. rewards, dones: [K], what EnvPool::Step has written.
EpisodeQueue::PutResult PutStep(EpisodeQueue* queue, EnvPool* envs, int64_t lane, const std::vector<int64_t>& slots,
                                const double* rewards, const bool* dones);

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_PUT_STEP_H_
