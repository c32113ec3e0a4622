// The arithmetic of virtual batch normalization, for the host and the device: the same bits everywhere.
//
// Sums over the reference batch are double: over an observation's positions in their order, from +0; then over the
// observations' sums in the batch's order, from +0. So an observation can be summed up apart from the others, and which
// thread does it changes nothing.
//   mean    the sum of the values / how many, rounded to float
//   factor  1 / sqrt(the sum of the squared deviations / how many + 1e-3), rounded to float
// A deviation is the value minus the mean, in float: what a forward pass multiplies by the factor, too. Its square is
// exact in double. Where all values of a channel are the same, the mean is that value, and the variance is zero.
#ifndef NEUROEVO_NETWORKS_VBN_H_
#define NEUROEVO_NETWORKS_VBN_H_

#include <cmath>
#include <cstdint>

#include "core/portable_math.h"

namespace neuroevo::vbn {

// What a value adds to its observation's first sum, and to its second one.
NEUROEVO_HD inline double Term(float value) { return static_cast<double>(value); }
NEUROEVO_HD inline double SquareTerm(float value, float mean) {
  const double deviation = static_cast<double>(Sub(value, mean));
  return deviation * deviation;
}

// sum: over all observations; count: observations times positions.
NEUROEVO_HD inline float Mean(double sum, int64_t count) {
  return static_cast<float>(sum / static_cast<double>(count));
}
NEUROEVO_HD inline float Factor(double squares, int64_t count) {
  return static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(count) + 1e-3));
}

// F: float, or Floats of simd.h.
template <class F>
NEUROEVO_HD inline F Normalized(F value, F mean, F factor) {
  return Mul(Sub(value, mean), factor);
}

}  // namespace neuroevo::vbn

#endif  // NEUROEVO_NETWORKS_VBN_H_
