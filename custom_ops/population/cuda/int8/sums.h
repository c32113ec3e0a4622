// Device functions shared by the kernels that compute a layer's sums, for .cu files only.
#ifndef NEUROEVO_POPULATION_CUDA_INT8_SUMS_H_
#define NEUROEVO_POPULATION_CUDA_INT8_SUMS_H_

#include "gpu/runtime.h"
#include "population/cuda/int8/kernels.h"

namespace neuroevo::cuda {

__device__ inline const char* RowOf(const Int8Call& call, int64_t position) {
  return call.packed + call.rows[position] * call.stride;
}

__device__ inline const uint32_t* InputOf(const Int8Layer& layer, const Int8Call& call, int64_t position) {
  return call.input + (call.by_slot ? int64_t{call.slots[position]} : position) * layer.input_words();
}

// Returns the exponent of the layer's sums.
__device__ inline int ExponentOf(const Int8Layer& layer, const Int8Call& call, int64_t position) {
  const int weights = reinterpret_cast<const int32_t*>(RowOf(call, position))[layer.index];
  return weights + (call.exponents == nullptr ? 0 : call.exponents[position]);
}

// Returns the bias of an output (0 for padding outputs), in units of 2^-exponent / 255.
__device__ inline int32_t BiasOf(const Int8Layer& layer, const char* row, int output, int exponent) {
  if (layer.bias_place < 0 || output >= layer.outputs) return 0;
  return int8::QuantizedBias(reinterpret_cast<const float*>(row + layer.bias_place)[output], exponent);
}

__device__ inline float OutputOf(const Int8Layer& layer, int32_t sum, int exponent) {
  return int8::Output(layer.relu_at_the_end && sum < 0 ? 0 : sum, exponent);
}

// Returns the largest value of `lanes` neighboring lanes. lanes: a power of two.
__device__ inline int32_t LargestOf(int32_t value, int lanes) {
#pragma unroll
  for (int other = lanes / 2; other > 0; other /= 2) {
    value = max(value, __shfl_xor_sync(0xffffffffu, value, other));
  }
  return value;
}

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_INT8_SUMS_H_
