// Host functions that launch the float32 kernels of a network's steps. They neither allocate nor wait.
#ifndef NEUROEVO_POPULATION_CUDA_FLOAT32_KERNELS_H_
#define NEUROEVO_POPULATION_CUDA_FLOAT32_KERNELS_H_

#include <cstdint>

#include "gpu/device.h"
#include "population/cuda/float32/network.h"
#include "population/cuda/grids.h"

namespace neuroevo::cuda {

// Input or output of a step, one tensor per position of the call. Tensors in the workspace are ordered by position,
// observations and outputs by slot.
struct Tensors {
  void* data;
  int64_t pitch;         // values from one tensor to the next
  const int32_t* slots;  // device, [count]; null: tensor i belongs to position i
  bool bytes = false;    // uint8, each to be multiplied by 1/255
};

// Step with sums: out = activation(vbn(in * weights) + bias); products are added in order by fused multiply-adds.
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
  // Whether four adjacent values may be read or written at once because offsets and sizes are multiples of four.
  bool weights_by_4, in_by_4, out_by_4;
};

// Adds the contribution of the members' factors to the sums of a convolution or dense layer, then applies vbn, bias and
// activation, in place in sums.out. sums.weights is the offset of A, followed by B, in a member; vbn, bias, thetas,
// stride and rows also refer to members. factors: device, [count], c of each position.
void LaunchFactors(const Sums& sums, const Layer& layer, const float* factors, int64_t count, device::Stream stream);

// layer: a convolution.
void LaunchConv(const Sums& sums, const Layer& layer, int64_t count, int multiprocessors, device::Stream stream);

// Dense layers are computed in tiles of positions that evaluate the same row, with at most this number of positions per
// tile. A block reads the weights once for its tile.
constexpr int kDenseTileSizes[] = {1, 4, 32};
constexpr int kDenseTiles = 3;

// tiles: device, the first positions of `count` tiles of size kDenseTileSizes[size]. A tile extends to its size or to
// the last position of its row (`positions`: number of positions in the call). Requires float inputs.
void LaunchDense(const Sums& sums, const int32_t* tiles, int64_t count, int size, int64_t positions,
                 int multiprocessors, device::Stream stream);

// out = activation(vbn(in) + bias), elementwise. sums.terms is ignored; units are channels, the innermost dimension. in
// and out may be the same tensors.
void LaunchElementwise(const Sums& sums, int64_t values, int64_t count, device::Stream stream);

// max_pool or avg_pool, layer_norm, recall and cell for `count` positions, which read and write floats. state_indices:
// device, [count].
void LaunchPool(const Layer& layer, const Tensors& in, const Tensors& out, int64_t count, device::Stream stream);
void LaunchLayerNorm(const Layer& layer, const Tensors& in, const Tensors& out, int64_t count, device::Stream stream);
void LaunchRecall(const Layer& layer, const States& states, const int32_t* state_indices, const Tensors& in,
                  const Tensors& out, int64_t count, device::Stream stream);
void LaunchCell(const Layer& layer, const States& states, const int32_t* state_indices, const Tensors& in,
                const Tensors& out, int64_t count, device::Stream stream);

// Inputs of a vbn layer on the reference batch: position i of rows * observations is observation i % observations in
// the network of rows[i].
struct VbnInputs {
  float* thetas;  // device, [R, stride]
  int64_t stride;
  const int32_t* rows;  // device, [rows * observations]
  int64_t vbn;          // offset in a row of [2, channels], the destination of means and factors
  int channels;
  int64_t values;  // of each position
  Tensors in;      // float
};

// Computes the layer's means and factors (vbn.h) for `rows` rows. sums: scratch memory on the device,
// [rows * observations, channels].
void LaunchStatistics(const VbnInputs& inputs, int64_t rows, int64_t observations, double* sums, device::Stream stream);

inline int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_FLOAT32_KERNELS_H_
