// The gradient of evolution strategies with low-rank members (Sarkar et al. 2025): the weighted sum of their noise,
// computed as one matrix product per layer over all members. The D noise values of a member are never materialized.
#ifndef NEUROEVO_POPULATION_LOW_RANK_SUM_H_
#define NEUROEVO_POPULATION_LOW_RANK_SUM_H_

#include <cstdint>

#include "core/thread_pool.h"
#include "networks/network.h"
#include "population/noise_sum.h"

namespace neuroevo {

// Adds to sums [D] the noise of each term, given A, B and the values of the member with its seed (networks/low_rank.h):
//   matrices          for each q in order (u * A[q][i]) * B[q][j], where u = weight / sqrt(rank) in double and
//                     u * A[q][i] is rounded to float
//   other parameters  weight * value
// Products of two floats are exact in double. They are added sequentially, in the order of the terms, so the result is
// bit-identical for every number of threads, vector width and split into calls.
void AddLowRankNoise(const Network& network, int rank, const NoiseTerms& terms, ThreadPool* pool, double* sums);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_LOW_RANK_SUM_H_
