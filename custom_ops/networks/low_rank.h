// Members of low rank (Sarkar et al. 2025, "Evolution Strategies at the Hyperscale", arXiv 2511.16652): networks that
// share the weights of a center and differ from it by few numbers. For the host and the device: the same bits
// everywhere.
//
// A member has a center, a seed, a scale and a rank r. Its F values are noise(seed) at positions 0 ... F - 1, which go
// to the layers in list order:
//   conv, dense   a matrix [m, n] of the center, m the inputs of a sum, n filters or units: A [r, m], then B [r, n];
//   the
//                 member's matrix is the center's plus c * sum over q of the outer product of A[q] and B[q], where
//                 c = scale / sqrt(r)
//   others        as many values as the layer has weights: the member's are fma(scale, value, the center's), as Perturb
//                 makes them, and take the values' place
// Behind them are the statistics of vbn layers, as behind a row's theta.
//
// A sum over a matrix is computed without ever making the matrix: y by the center's weights as ever; for each q in
// order z = the dot product of the inputs and A[q], t = c * z and y = fma(t, B[q], y); then what follows the layer. z
// is 16 partial sums, of the inputs i with the same i % 16 in ascending order from +0, by fused multiply-adds; they are
// added by Total. Inputs outside the image are zeros. A zero may be left out, as in population/reference, and y and z
// are never -0 for the same reason. A member whose scale is 0 has no factors: it is the center, bit for bit.
#ifndef NEUROEVO_NETWORKS_LOW_RANK_H_
#define NEUROEVO_NETWORKS_LOW_RANK_H_

#include <cstdint>
#include <vector>

#include "core/portable_math.h"
#include "networks/network.h"

namespace neuroevo::low_rank {

constexpr int kMaxRank = 64;
constexpr int kPartialSums = 16;

// Throws unless it is in [1, kMaxRank].
void CheckRank(int64_t rank);

// c
NEUROEVO_HD inline float Factor(float scale, int rank) { return Div(scale, Sqrt(static_cast<float>(rank))); }

// The partial sums are lost.
NEUROEVO_HD inline float Total(float (&sums)[kPartialSums]) {
  for (int half = kPartialSums / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] = Add(sums[i], sums[i + half]);
  }
  return WithoutMinusZero(sums[0]);
}

// theta [D] = the member's weights as a vector, from the center's theta and the member's values: a weight of a matrix
// is the center's, to which (c * A[q][i]) * B[q][j] are added in order by fused multiply-adds. A forward pass, which
// never makes them, has other last bits.
void Materialize(const Network& network, const std::vector<Layer>& member_layers, const float* center,
                 const float* member, float scale, float* theta);

}  // namespace neuroevo::low_rank

#endif  // NEUROEVO_NETWORKS_LOW_RANK_H_
