// Elementwise activation functions for host and device, for single values and vectors, with bit-identical results.
// F: float, or Floats of simd.h.
#ifndef NEUROEVO_NETWORKS_ACTIVATIONS_H_
#define NEUROEVO_NETWORKS_ACTIVATIONS_H_

#include "core/portable_math.h"

namespace neuroevo::activations {

template <class F>
NEUROEVO_HD inline F LeakyRelu(F x, F slope) {
  return Select(ShiftRightSigned(ToBits(x), 31), Mul(x, slope), x);  // the sign bit decides
}

// 1 / (1 + exp(-x)), computed from the hyperbolic tangent; error at most 1e-7.
template <class F>
NEUROEVO_HD inline F Sigmoid(F x) {
  return Fma(Tanh(Mul(x, F(0.5f))), F(0.5f), F(0.5f));
}

// x sigmoid(x), also called swish.
template <class F>
NEUROEVO_HD inline F Silu(F x) {
  return Mul(x, Sigmoid(x));
}

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as in Hendrycks and Gimpel 2016; 0.5 (1 + tanh(y)) is sigmoid(2
// y).
template <class F>
NEUROEVO_HD inline F Gelu(F x) {
  const F inner = Mul(x, Fma(Mul(x, x), F(0.07135481627f), F(1.5957691216f)));
  return Mul(x, Sigmoid(inner));
}

// Update an LSTM cell from the pre-activations of its gates i, f, g and o: read c and write the new c and h.
template <class F>
NEUROEVO_HD inline void Cell(F i, F f, F g, F o, F* c, F* h) {
  *c = Fma(Sigmoid(f), *c, Mul(Sigmoid(i), Tanh(g)));
  *h = Mul(Sigmoid(o), Tanh(*c));
}

}  // namespace neuroevo::activations

#endif  // NEUROEVO_NETWORKS_ACTIVATIONS_H_
