// Vectorized quantization of float weights: AbsoluteBits and QuantizedWeight of rules.h.
#ifndef NEUROEVO_NETWORKS_INT8_QUANTIZE_H_
#define NEUROEVO_NETWORKS_INT8_QUANTIZE_H_

#include <cstdint>

namespace neuroevo {

// Return the maximum AbsoluteBits of n weights.
uint32_t LargestBits(const float* weights, int64_t n);

// Write the QuantizedWeight of each of n weights.
void Quantize(const float* weights, int64_t n, int exponent, int8_t* out);

}  // namespace neuroevo

#endif  // NEUROEVO_NETWORKS_INT8_QUANTIZE_H_
