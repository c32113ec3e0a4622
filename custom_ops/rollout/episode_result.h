// What is known of an episode once it is over: the one thing that leaves a lane.
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
  EpisodeEnd end = {};  // what the env pool reports about it
};

// Results as a matrix of what is a vector in each: the width is that of the longest, with zeros after a shorter one.
template <class T>
int64_t WidthOf(const std::vector<EpisodeResult>& results, std::vector<T> EpisodeEnd::* row) {
  size_t width = 0;
  for (const EpisodeResult& result : results) width = std::max(width, (result.end.*row).size());
  return static_cast<int64_t>(width);
}

// Writes it: out [E, WidthOf()].
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
