// Float weights to bytes, in vectors: rules.h's AbsoluteBits and QuantizedWeight.
#ifndef NEUROEVO_NETWORKS_INT8_QUANTIZE_H_
#define NEUROEVO_NETWORKS_INT8_QUANTIZE_H_

#include <cstdint>

namespace neuroevo {

// The largest AbsoluteBits of n weights.
uint32_t LargestBits(const float* weights, int64_t n);

// QuantizedWeight of n weights.
void Quantize(const float* weights, int64_t n, int exponent, int8_t* out);

}  // namespace neuroevo

#endif  // NEUROEVO_NETWORKS_INT8_QUANTIZE_H_
