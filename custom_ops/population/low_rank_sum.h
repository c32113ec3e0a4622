// The gradient of evolution strategies with members of low rank (Sarkar et al. 2025): the weighted sum of their noise,
// as one product of matrices a layer over all members. No member's noise is ever made as D numbers.
#ifndef NEUROEVO_POPULATION_LOW_RANK_SUM_H_
#define NEUROEVO_POPULATION_LOW_RANK_SUM_H_

#include <cstdint>

#include "core/thread_pool.h"
#include "networks/network.h"
#include "population/noise_sum.h"

namespace neuroevo {

// sums [D] += over the terms, with A, B and values of the member with that seed and rank (networks/low_rank.h):
//   matrices   for each q in order (u * A[q][i]) * B[q][j], where u = weight / sqrt(rank) in double and u * A[q][i] is
//              rounded to float
//   others     weight * value
// Products of two floats are exact in double; they are added one after the other, in the order of the terms: the bits
// are those of this description whatever the number of threads, the vectors' width and the split into calls.
void AddLowRankNoise(const Network& network, int rank, const NoiseTerms& terms, ThreadPool* pool, double* sums);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_LOW_RANK_SUM_H_
