// Rules of integer networks, shared by all backends and the device.
//
// A weight is round(w * 2^k) in [-127, 127], with one k per convolution or dense layer: the largest that keeps all its
// weights in that range. An activation is a byte a with the value a * 2^-e / 255, with one e per layer, slot and step;
// an observation's bytes have e = 0. So a layer's sum of products, an exact 32-bit integer, is in units of
// 2^-(k+e) / 255; its biases are rounded to that unit and added. After the ReLU the layer's largest sum determines the
// shift s that reduces the sums to bytes with exponent k + e - s. The last layer's sums are the outputs.
//
// All rounding is to nearest, halves to even. Integer sums do not depend on their order, so results are bit-identical
// for every backend, vector width, device and grouping of slots.
#ifndef NEUROEVO_NETWORKS_INT8_RULES_H_
#define NEUROEVO_NETWORKS_INT8_RULES_H_

#include <cstdint>
#include <cstring>

#include "core/portable_math.h"

namespace neuroevo::int8 {

constexpr int32_t kMaxWeight = 127, kMaxActivation = 255;
// Limit of the sum of products and of the bias, so that their total fits 32 bits. Larger biases are clipped.
constexpr int32_t kMaxSum = 1 << 30;
constexpr int64_t kMaxInputs = kMaxSum / (kMaxWeight * kMaxActivation);  // per unit or filter: 33,155
// If all weights are below 2^-26 they lose bits, and weights above 2^39 are clipped: exponents stay within a double's.
constexpr int kMaxExponent = 32;
constexpr int kMaxLayers = 16;  // convolution and dense layers per network

// value / 2^shift, for value < 2^62 and shift in [0, 62].
NEUROEVO_HD inline uint64_t RoundShift(uint64_t value, int shift) {
  if (shift == 0) return value;
  return (value + ((uint64_t{1} << (shift - 1)) - 1) + ((value >> shift) & 1)) >> shift;
}

// value * factor * 2^exponent, factor in [1, 255], clipped to +-limit; NaN becomes 0.
NEUROEVO_HD inline int32_t RoundScaled(float value, uint32_t factor, int exponent, int32_t limit) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  const int biased = static_cast<int>(bits >> 23 & 255);
  const uint32_t fraction = bits & 0x7fffff;
  if (biased == 255 && fraction != 0) return 0;
  // The absolute value is mantissa * 2^(power - 150).
  const uint64_t mantissa = uint64_t{factor} * (biased == 0 ? fraction : fraction | 0x800000);
  const int shift = 150 - (biased == 0 ? 1 : biased) - exponent;
  uint64_t rounded = 0;
  if (biased == 255 || shift <= -31) {
    rounded = mantissa == 0 ? 0 : limit;
  } else if (shift <= 0) {
    rounded = mantissa << -shift;
  } else if (shift < 62) {
    rounded = RoundShift(mantissa, shift);
  }
  if (rounded > static_cast<uint64_t>(limit)) rounded = limit;
  return bits >> 31 ? -static_cast<int32_t>(rounded) : static_cast<int32_t>(rounded);
}

// Bits of the absolute weight, which as integers are ordered like the values. NaN counts as 0.
NEUROEVO_HD inline uint32_t AbsoluteBits(float weight) {
  uint32_t bits;
  memcpy(&bits, &weight, sizeof(bits));
  bits &= 0x7fffffff;
  return bits > 0x7f800000 ? 0 : bits;
}

// k of a layer, from the largest AbsoluteBits of its weights; 0 if all weights are zero.
NEUROEVO_HD inline int WeightExponent(uint32_t largest) {
  if (largest == 0) return 0;
  const int biased = static_cast<int>(largest >> 23);
  int exponent = 133 - biased;  // scales the largest weight to [64, 128)
  if (RoundShift((largest & 0x7fffff) | 0x800000, 17) > kMaxWeight) --exponent;
  if (exponent > kMaxExponent) return kMaxExponent;
  return exponent < -kMaxExponent ? -kMaxExponent : exponent;
}

NEUROEVO_HD inline int8_t QuantizedWeight(float weight, int exponent) {
  return static_cast<int8_t>(RoundScaled(weight, 1, exponent, kMaxWeight));
}

// A bias in units of 2^-exponent / 255.
NEUROEVO_HD inline int32_t QuantizedBias(float bias, int exponent) {
  return RoundScaled(bias, kMaxActivation, exponent, kMaxSum);
}

// s: the smallest shift with which the largest sum, which is not negative, fits a byte.
NEUROEVO_HD inline int ActivationShift(int32_t largest) {
  int shift = 0;
  while (RoundShift(static_cast<uint32_t>(largest), shift) > kMaxActivation) ++shift;
  return shift;
}

// The activation of a sum: ReLU, then the shift.
NEUROEVO_HD inline uint8_t Activation(int32_t sum, int shift) {
  return sum <= 0 ? 0 : static_cast<uint8_t>(RoundShift(static_cast<uint32_t>(sum), shift));
}

// e of the activations; sums are in units of 2^-exponent / 255. 0 if all sums are zero, since e would only grow.
NEUROEVO_HD inline int ActivationExponent(int32_t largest, int exponent, int shift) {
  return largest == 0 ? 0 : exponent - shift;
}

// An output as a float: sum * 2^-exponent / 255. Distinct sums below 255 * 2^16 give distinct floats (unless the float
// underflows), so that the maximum is preserved; adjacent larger sums may become equal.
NEUROEVO_HD inline float Output(int32_t sum, int exponent) {
  const uint64_t bits = static_cast<uint64_t>(1023 - exponent) << 52;
  double power;
  memcpy(&power, &bits, sizeof(power));
  return static_cast<float>(static_cast<double>(sum) / kMaxActivation * power);
}

}  // namespace neuroevo::int8

#endif  // NEUROEVO_NETWORKS_INT8_RULES_H_
