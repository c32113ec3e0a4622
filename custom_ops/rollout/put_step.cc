#include "rollout/put_step.h"

#include <optional>
#include <utility>
#include <vector>

namespace neuroevo {

EpisodeQueue::PutResult PutStep(EpisodeQueue* queue, EnvPool* envs, int64_t lane, const std::vector<int64_t>& slots,
                                const double* rewards, const bool* dones) {
  std::vector<std::optional<StateKey>> keys;
  if (const std::vector<size_t> watched = queue->Watched(lane, slots); !watched.empty()) {
    std::vector<int64_t> living;
    std::vector<size_t> indices;
    for (size_t k : watched) {
      if (dones[k]) continue;
      living.push_back(slots[k]);
      indices.push_back(k);
    }
    const auto found = envs->Keys(living);
    keys.resize(slots.size());
    for (size_t i = 0; i < indices.size(); ++i) keys[indices[i]] = found[i];
  }
  std::vector<int64_t> done;
  for (size_t k = 0; k < slots.size(); ++k) {
    if (dones[k]) done.push_back(slots[k]);
  }
  std::vector<EpisodeEnd> ends;
  if (!done.empty()) {
    queue->CheckPut(lane, slots);  // ends can be taken only once and must not be lost by a Put that throws
    ends = envs->TakeEnds(done);
  }
  return queue->Put(lane, slots, rewards, dones, std::move(ends), keys);
}

}  // namespace neuroevo
