#include "rollout/put_step.h"

#include <utility>

namespace neuroevo {

EpisodeQueue::PutResult PutStep(EpisodeQueue* queue, EnvPool* envs, int64_t lane, const std::vector<int64_t>& slots,
                                const double* rewards, const bool* dones) {
  std::vector<int64_t> done;
  for (size_t k = 0; k < slots.size(); ++k) {
    if (dones[k]) done.push_back(slots[k]);
  }
  std::vector<EpisodeEnd> ends;
  if (!done.empty()) {
    queue->CheckPut(lane, slots);  // ends can be taken only once and must not be lost by a Put that throws
    ends = envs->TakeEnds(done);
  }
  return queue->Put(lane, slots, rewards, dones, std::move(ends));
}

}  // namespace neuroevo
