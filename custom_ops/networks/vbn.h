// Virtual batch normalization for host and device, with bit-identical results.
//
// Sums over the reference batch are double: first over each observation's positions in order, from +0; then over the
// observations' sums in batch order, from +0. So threads can sum up observations independently without changing the
// result.
//   mean    (sum of the values) / count, rounded to float
//   factor  1 / sqrt((sum of the squared deviations) / count + 1e-3), rounded to float
// A deviation is the value minus the mean, in float, as in a forward pass, which multiplies it by the factor. Its
// square is exact in double. If all values of a channel are equal, the mean is that value, and the variance is zero.
#ifndef NEUROEVO_NETWORKS_VBN_H_
#define NEUROEVO_NETWORKS_VBN_H_

#include <cmath>
#include <cstdint>

#include "core/portable_math.h"

namespace neuroevo::vbn {

// Term of a value in its observation's sum of values, and in its sum of squared deviations.
NEUROEVO_HD inline double Term(float value) { return static_cast<double>(value); }
NEUROEVO_HD inline double SquareTerm(float value, float mean) {
  const double deviation = static_cast<double>(Sub(value, mean));
  return deviation * deviation;
}

// sum: over all observations; count: number of observations times positions.
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
