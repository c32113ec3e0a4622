// Layer normalization (Ba et al. 2016) over the channels of one position, for host and device, with bit-identical
// results. Values are normalized as in vbn.h, but with sums over the position's channels: eight double sums, each over
// the channels c with the same c % 8 in ascending order, starting from +0, which are then added pairwise.
#ifndef NEUROEVO_NETWORKS_LAYER_NORM_H_
#define NEUROEVO_NETWORKS_LAYER_NORM_H_

#include <cstdint>

#include "networks/vbn.h"

namespace neuroevo::layer_norm {

template <class Term>
NEUROEVO_HD inline double Sum(const float* values, int channels, const Term& term) {
  double sums[8] = {};
  int c = 0;
  for (; c + 8 <= channels; c += 8) {
    for (int k = 0; k < 8; ++k) sums[k] += term(values[c + k]);
  }
  for (int k = 0; c + k < channels; ++k) sums[k] += term(values[c + k]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// out may alias values.
NEUROEVO_HD inline void Normalize(const float* values, int channels, float* out) {
  const float mean = vbn::Mean(Sum(values, channels, [](float x) { return vbn::Term(x); }), channels);
  const float factor = vbn::Factor(Sum(values, channels, [=](float x) { return vbn::SquareTerm(x, mean); }), channels);
  for (int c = 0; c < channels; ++c) out[c] = vbn::Normalized(values[c], mean, factor);
}

}  // namespace neuroevo::layer_norm

#endif  // NEUROEVO_NETWORKS_LAYER_NORM_H_
