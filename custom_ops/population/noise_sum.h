// The gradients of evolution strategies: weighted sums of noise vectors recomputed from their seeds (Salimans et al.
// 2017), and the per-weight gradients of the variance (Wierstra et al. 2014).
#ifndef NEUROEVO_POPULATION_NOISE_SUM_H_
#define NEUROEVO_POPULATION_NOISE_SUM_H_

#include <cstdint>
#include <vector>

#include "core/thread_pool.h"

namespace neuroevo {

struct NoiseTerms {
  std::vector<uint64_t> seeds;
  std::vector<float> weights, square_weights;  // same length as seeds, finite
};

// Returns the n terms without those whose weights are zero, which do not change the result: a sum that starts at +0
// never becomes -0. Throws if a weight is not finite, naming its index. square_weights: null means all zeros.
NoiseTerms NonZeroTerms(const uint64_t* seeds, const float* weights, const float* square_weights, int64_t n);

// Throws if [begin, begin + count) is not a valid range of noise positions.
void CheckPositions(int64_t begin, int64_t count);

// out[i] = sum over the terms of weight * z, z = noise(seed, begin + i), for i in [0, count). squares: null, or the
// output for the sums of square_weight * (z^2 - 1), where z^2 - 1 is rounded to float once, as by SquareTerm in
// core/noise.h. Generating the noise dominates the cost, so computing both sums costs little more than one.
//
// Products are exact and are accumulated in double, in the order of the terms; the sum is then rounded to float. The
// result is bit-identical for every number of threads, vector width and split into calls.
void SumNoise(const NoiseTerms& terms, int64_t begin, int64_t count, ThreadPool* pool, float* out,
              float* squares = nullptr);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_NOISE_SUM_H_
