// Low-rank members (Sarkar et al. 2025, "Evolution Strategies at the Hyperscale", arXiv 2511.16652): networks that
// share the weights of a center and differ from it by a low-rank perturbation. Results are bit-identical on host and
// device.
//
// A member has a center, a seed, a scale and a rank r. Its F values are noise(seed) at positions 0 ... F - 1, assigned
// to the layers in list order:
//   conv, dense    for the center's matrix [m, n], m inputs per sum, n filters or units: A [r, m], then B [r, n]; the
//                  member's matrix is the center's plus c * sum over q of the outer product of A[q] and B[q], where
//                  c = scale / sqrt(r)
//   other layers   one value per weight: the member's weights are fma(scale, value, the center's), as computed by
//                  Perturb, and are stored in place of the values
// The statistics of vbn layers follow, as they follow a row's theta.
//
// The matrix product is computed without materializing the member's matrix: y with the center's weights as usual; for
// each q in order z = the dot product of the inputs and A[q], t = c * z and y = fma(t, B[q], y). z is computed as 16
// partial sums, each over the inputs i with the same i % 16 in ascending order from +0, by fused multiply-adds; Total
// adds them. Inputs outside the image are zeros. Zero inputs may be skipped, as in population/reference, and for the
// same reason y and z are never -0. A member with scale 0 has no factors: it is bit-identical to the center.
#ifndef NEUROEVO_NETWORKS_LOW_RANK_H_
#define NEUROEVO_NETWORKS_LOW_RANK_H_

#include <cstdint>
#include <vector>

#include "core/portable_math.h"
#include "networks/network.h"

namespace neuroevo::low_rank {

constexpr int kMaxRank = 64;
constexpr int kPartialSums = 16;

// Throw unless rank is in [1, kMaxRank].
void CheckRank(int64_t rank);

// c
NEUROEVO_HD inline float Factor(float scale, int rank) { return Div(scale, Sqrt(static_cast<float>(rank))); }

// Add the partial sums pairwise; overwrites them.
NEUROEVO_HD inline float Total(float (&sums)[kPartialSums]) {
  for (int half = kPartialSums / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] = Add(sums[i], sums[i + half]);
  }
  return WithoutMinusZero(sums[0]);
}

// Write the member's weights to theta [D], from the center's theta and the member's values: a matrix weight is the
// center's plus (c * A[q][i]) * B[q][j] for each q in order, by fused multiply-adds. A forward pass, which does not
// materialize the weights, differs in the last bits.
void Materialize(const Network& network, const std::vector<Layer>& member_layers, const float* center,
                 const float* member, float scale, float* theta);

}  // namespace neuroevo::low_rank

#endif  // NEUROEVO_NETWORKS_LOW_RANK_H_
