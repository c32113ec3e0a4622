// The gradients of evolution strategies: weighted sums of noise vectors (Salimans et al. 2017), recomputed from their
// seeds instead of being kept, and of what each value says of its variance (Wierstra et al. 2014).
#ifndef NEUROEVO_POPULATION_NOISE_SUM_H_
#define NEUROEVO_POPULATION_NOISE_SUM_H_

#include <cstdint>
#include <vector>

#include "core/thread_pool.h"

namespace neuroevo {

struct NoiseTerms {
  std::vector<uint64_t> seeds;
  std::vector<float> weights, square_weights;  // as many, finite
};

// The n terms without those whose weights are zero, which change no bit of a sum: one that begins with +0 never becomes
// -0. Throws for a weight that is not finite, naming its index. square_weights: null for zeros.
NoiseTerms NonZeroTerms(const uint64_t* seeds, const float* weights, const float* square_weights, int64_t n);

// Throws unless [begin, begin + count) are positions.
void CheckPositions(int64_t begin, int64_t count);

// out[i] = sum over the terms of weight * z, z = noise(seed, begin + i), for i in [0, count). squares: null, or where
// the sums of square_weight * (z^2 - 1) go, z^2 - 1 rounded to float once, as SquareTerm in core/noise.h. Making noise
// takes longer than adding it up, so that both sums cost little more than one.
//
// Products are exact and added up in double, in the order of the terms, and the sum is rounded to float: the bits are
// those of this description whatever the number of threads, the vectors' width and the split into calls.
void SumNoise(const NoiseTerms& terms, int64_t begin, int64_t count, ThreadPool* pool, float* out,
              float* squares = nullptr);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_NOISE_SUM_H_
