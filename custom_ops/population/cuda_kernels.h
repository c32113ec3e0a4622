// The kernels of a network's steps in float32, as the host calls them. None allocates or waits.
#ifndef NEUROEVO_POPULATION_CUDA_KERNELS_H_
#define NEUROEVO_POPULATION_CUDA_KERNELS_H_

#include <cstdint>

#include "core/device.h"
#include "population/cuda_grids.h"
#include "population/cuda_network.h"

namespace neuroevo::cuda {

// What a step reads or writes for each position of the call: tensors of the workspace lie in the order of positions,
// observations and outputs in that of slots.
struct Tensors {
  void* data;
  int64_t pitch;         // values from one tensor to the next
  const int32_t* slots;  // device, [count]; null: tensor i is that of position i
  bool bytes = false;    // uint8, each to be multiplied by 1/255
};

// A step that sums: out = activation(in * weights + bias), a sum's products in order, one fused multiply-add each.
struct Sums {
  const float* thetas;  // device, [R, stride]
  int64_t stride;
  const int32_t* rows;  // device, [count]
  int64_t weights;      // offset in theta of [terms, units]
  int64_t bias;         // offset in theta of [units]; -1: none
  int terms, units;
  Activation activation;
  Tensors in, out;
  // Whether four adjacent values may be read or written at once, as places and sizes are multiples of four.
  bool weights_by_4, in_by_4, out_by_4;
};

// layer: a convolution.
void LaunchConv(const Sums& sums, const Layer& layer, int64_t count, int multiprocessors, device::Stream stream);

// Dense layers go by tiles of positions that play one row, of at most so many: a block reads the weights once for its
// tile.
constexpr int kDenseTileSizes[] = {1, 4, 32};
constexpr int kDenseTiles = 3;

// tiles: device, the first positions of `count` tiles of size kDenseTileSizes[size]. A tile reaches to the end of its
// row's positions (of `positions` in the call) or to its size. Needs float inputs.
void LaunchDense(const Sums& sums, const int32_t* tiles, int64_t count, int size, int64_t positions,
                 int multiprocessors, device::Stream stream);

// out = activation(in + bias), value by value; sums.terms is ignored, units are channels, the innermost dimension.
void LaunchElementwise(const Sums& sums, int64_t values, int64_t count, device::Stream stream);

inline int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_KERNELS_H_
