// Float weights to bytes, in vectors: rules.h's AbsoluteBits and QuantisedWeight.
#ifndef NEUROEVO_NETWORKS_INT8_QUANTISE_H_
#define NEUROEVO_NETWORKS_INT8_QUANTISE_H_

#include <cstdint>

namespace neuroevo {

// The largest AbsoluteBits of n weights.
uint32_t LargestBits(const float* weights, int64_t n);

// QuantisedWeight of n weights.
void Quantise(const float* weights, int64_t n, int exponent, int8_t* out);

}  // namespace neuroevo

#endif  // NEUROEVO_NETWORKS_INT8_QUANTISE_H_
