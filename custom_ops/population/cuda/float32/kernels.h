// The kernels of a network's steps in float32, as the host calls them. None allocates or waits.
#ifndef NEUROEVO_POPULATION_CUDA_FLOAT32_KERNELS_H_
#define NEUROEVO_POPULATION_CUDA_FLOAT32_KERNELS_H_

#include <cstdint>

#include "gpu/device.h"
#include "population/cuda/float32/network.h"
#include "population/cuda/grids.h"

namespace neuroevo::cuda {

// What a step reads or writes for each position of the call: tensors of the workspace lie in the order of positions,
// observations and outputs in that of slots.
struct Tensors {
  void* data;
  int64_t pitch;         // values from one tensor to the next
  const int32_t* slots;  // device, [count]; null: tensor i is that of position i
  bool bytes = false;    // uint8, each to be multiplied by 1/255
};

// A step that sums: out = activation(vbn(in * weights) + bias), a sum's products in order, one fused multiply-add each.
struct Sums {
  const float* thetas;  // device, [R, stride]
  int64_t stride;
  const int32_t* rows;  // device, [count]
  int64_t weights;      // offset in a row of [terms, units]
  int64_t vbn;          // offset in a row of [2, units], means and factors; -1: none
  int64_t bias;         // offset in a row of [units]; -1: none
  int terms, units;
  Activation activation;
  float slope;  // of leaky_relu
  Tensors in, out;
  // Whether four adjacent values may be read or written at once, as places and sizes are multiples of four.
  bool weights_by_4, in_by_4, out_by_4;
};

// What a member's factors add to the sums of a convolution or dense layer, and what follows them, in place in sums.out:
// sums.weights is where A, then B are in a member, vbn and bias are of a member, too, and thetas, stride and rows are
// the members'. factors: device, [count], c of each position.
void LaunchFactors(const Sums& sums, const Layer& layer, const float* factors, int64_t count, device::Stream stream);

// layer: a convolution.
void LaunchConv(const Sums& sums, const Layer& layer, int64_t count, int multiprocessors, device::Stream stream);

// Dense layers go by tiles of positions that play one row, at most this number of positions in each: a block reads the
// weights once for its tile.
constexpr int kDenseTileSizes[] = {1, 4, 32};
constexpr int kDenseTiles = 3;

// tiles: device, the first positions of `count` tiles of size kDenseTileSizes[size]. A tile reaches to the end of its
// row's positions (of `positions` in the call) or to its size. Needs float inputs.
void LaunchDense(const Sums& sums, const int32_t* tiles, int64_t count, int size, int64_t positions,
                 int multiprocessors, device::Stream stream);

// out = activation(vbn(in) + bias), value by value; sums.terms is ignored, units are channels, the innermost dimension.
// in and out may be the same tensors.
void LaunchElementwise(const Sums& sums, int64_t values, int64_t count, device::Stream stream);

// A max_pool or avg_pool, layer_norm, recall or cell of `count` positions, which read and write floats. state_indices:
// device, [count].
void LaunchPool(const Layer& layer, const Tensors& in, const Tensors& out, int64_t count, device::Stream stream);
void LaunchLayerNorm(const Layer& layer, const Tensors& in, const Tensors& out, int64_t count, device::Stream stream);
void LaunchRecall(const Layer& layer, const States& states, const int32_t* state_indices, const Tensors& in,
                  const Tensors& out, int64_t count, device::Stream stream);
void LaunchCell(const Layer& layer, const States& states, const int32_t* state_indices, const Tensors& in,
                const Tensors& out, int64_t count, device::Stream stream);

// A vbn layer of rows whose networks have seen a reference batch: position i of rows * observations is observation
// i % observations as rows[i] has it.
struct VbnInputs {
  float* thetas;  // device, [R, stride]
  int64_t stride;
  const int32_t* rows;  // device, [rows * observations]
  int64_t vbn;          // offset in a row of [2, channels], where means and factors go
  int channels;
  int64_t values;  // of each position
  Tensors in;      // float
};

// The layer's means and factors (vbn.h) for `rows` rows. sums: device, [rows * observations, channels], for its own
// use.
void LaunchStatistics(const VbnInputs& inputs, int64_t rows, int64_t observations, double* sums, device::Stream stream);

inline int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_FLOAT32_KERNELS_H_
