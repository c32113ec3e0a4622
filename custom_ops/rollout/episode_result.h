// Results of finished episodes, which are all that a lane returns.
#ifndef NEUROEVO_ROLLOUT_EPISODE_RESULT_H_
#define NEUROEVO_ROLLOUT_EPISODE_RESULT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "envs/episode_end.h"

namespace neuroevo {

struct EpisodeResult {
  int64_t id = 0;
  double total_reward = 0;  // the return
  int64_t steps = 0;
  EpisodeEnd end = {};  // the env pool's report
};

// Matrix with one row per result from a vector-valued member: as wide as the longest vector, shorter ones zero-padded.
template <class T>
int64_t WidthOf(const std::vector<EpisodeResult>& results, std::vector<T> EpisodeEnd::* row) {
  size_t width = 0;
  for (const EpisodeResult& result : results) width = std::max(width, (result.end.*row).size());
  return static_cast<int64_t>(width);
}

// Write the matrix to out [E, WidthOf()].
template <class T>
void CopyRows(const std::vector<EpisodeResult>& results, std::vector<T> EpisodeEnd::* row, T* out) {
  const int64_t width = WidthOf(results, row);
  for (const EpisodeResult& result : results) {
    const std::vector<T>& values = result.end.*row;
    std::fill(std::copy(values.begin(), values.end(), out), out + width, T{0});
    out += width;
  }
}

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_EPISODE_RESULT_H_
