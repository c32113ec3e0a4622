// The weighted sum of noise vectors on the GPU: the bits of population/noise_sum.h.
#ifndef NEUROEVO_POPULATION_CUDA_NOISE_SUM_H_
#define NEUROEVO_POPULATION_CUDA_NOISE_SUM_H_

#include <cstdint>

#include "gpu/device.h"
#include "population/noise_sum.h"

namespace neuroevo::cuda {

// SumNoise of n terms, all of whose arrays are on the device.
void SumNoiseOnDevice(const uint64_t* seeds, const float* weights, const float* square_weights, int64_t n,
                      int64_t begin, int64_t count, float* out, float* squares, device::Stream stream);

// SumNoise by the GPU that this thread uses. out, squares: of the host.
void SumNoise(const NoiseTerms& terms, int64_t begin, int64_t count, float* out, float* squares = nullptr);

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_NOISE_SUM_H_
