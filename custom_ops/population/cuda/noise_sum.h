// The weighted sum of noise vectors on the GPU, bit-identical to population/noise_sum.h.
#ifndef NEUROEVO_POPULATION_CUDA_NOISE_SUM_H_
#define NEUROEVO_POPULATION_CUDA_NOISE_SUM_H_

#include <cstdint>

#include "gpu/device.h"
#include "population/noise_sum.h"

namespace neuroevo::cuda {

// SumNoise of n terms with all arrays on the device.
void SumNoiseOnDevice(const uint64_t* seeds, const float* weights, const float* square_weights, int64_t n,
                      int64_t begin, int64_t count, float* out, float* squares, device::Stream stream);

// SumNoise on the calling thread's current GPU. out, squares: in host memory.
void SumNoise(const NoiseTerms& terms, int64_t begin, int64_t count, float* out, float* squares = nullptr);

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_NOISE_SUM_H_
