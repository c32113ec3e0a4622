// Launches for more positions than fit into one grid.
#ifndef NEUROEVO_POPULATION_CUDA_GRIDS_H_
#define NEUROEVO_POPULATION_CUDA_GRIDS_H_

#include <algorithm>
#include <cstdint>

namespace neuroevo::cuda {

// Calls launch(first position, blocks) for chunks of positions that fit into a grid, which has fewer than 2^31 blocks.
template <class Function>
void ForGrids(int64_t count, int64_t blocks_each, const Function& launch) {
  const int64_t at_once = std::max<int64_t>(1, 0x7fffffff / blocks_each);
  for (int64_t first = 0; first < count; first += at_once) {
    launch(first, static_cast<unsigned>(std::min(at_once, count - first) * blocks_each));
  }
}

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_GRIDS_H_
