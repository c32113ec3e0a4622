// The weighted sum of noise vectors on the GPU: the bits of population/noise_sum.h.
#ifndef NEUROEVO_POPULATION_CUDA_NOISE_SUM_H_
#define NEUROEVO_POPULATION_CUDA_NOISE_SUM_H_

#include <cstdint>

#include "gpu/device.h"
#include "population/noise_sum.h"

namespace neuroevo::cuda {

// out[i] = sum of weights [n] * noise of seeds [n] at position begin + i, for i in [0, count), or of the squares; all
// on the device.
void SumNoiseOnDevice(const uint64_t* seeds, const float* weights, int64_t n, int64_t begin, int64_t count,
                      bool squared, float* out, device::Stream stream);

// SumNoise by the GPU that this thread uses. out: of the host.
void SumNoise(const NoiseTerms& terms, int64_t begin, int64_t count, float* out, bool squared = false);

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_NOISE_SUM_H_
