// Noise: standard normal values that are a pure function of a 64-bit seed and a position. The values are bit-identical
// on host and device, for any vector width and any split of a range. Host code needs -ffp-contract=off.
//
// Positions 4c ... 4c + 3 are computed from the four Philox words of counter c: words (0, 1) and (2, 3) are each a
// radius and an angle of the Box-Muller transform (1958), which yields two normals. 32-bit radii reach 6.7 sigma.
#ifndef NEUROEVO_CORE_NOISE_H_
#define NEUROEVO_CORE_NOISE_H_

#include <cstdint>

#include "core/philox.h"
#include "core/portable_math.h"

namespace neuroevo {

template <class F>
struct NormalPair {
  F first, second;
};

// Box-Muller: sqrt(-2 ln u) times cosine and sine of the angle, with u = (radius + 1/2) / 2^32 rounded to float.
template <class F, class I>
NEUROEVO_HD inline NormalPair<F> NormalsFromWords(I radius, I angle) {
  const F u = Fma(UnsignedToFloat(radius), F(0x1p-32f), F(0x1p-33f));
  const F length = Sqrt(MinusTwoLog(u));
  const SinCos<F> direction = SinCosOfTurn<F>(angle);
  return {Mul(length, direction.cos), Mul(length, direction.sin)};
}

// The four normals at positions 4 * counter ... 4 * counter + 3.
struct FourNormals {
  float value[4];
};

NEUROEVO_HD inline FourNormals NormalsAt(uint64_t seed, uint64_t counter) {
  const Philox philox = PhiloxWords(seed, counter);
  const NormalPair<float> a = NormalsFromWords<float>(philox.word[0], philox.word[1]);
  const NormalPair<float> b = NormalsFromWords<float>(philox.word[2], philox.word[3]);
  return {{a.first, a.second, b.first, b.second}};
}

// Return noise(seed, position). This is the definition; all other versions are bit-identical.
NEUROEVO_HD inline float Noise(uint64_t seed, uint64_t position) {
  return NormalsAt(seed, position / 4).value[position % 4];
}

// z^2 - 1, rounded once: the deviation of a standard normal's square from its expected value 1.
template <class F>
NEUROEVO_HD inline F SquareTerm(F z) {
  return Fma(z, z, F(-1.0f));
}

// Vectorized and bit-identical, host only. For each i in [0, count), with the noise at position begin + i:
// out[i] = noise.
void FillNoise(uint64_t seed, int64_t begin, int64_t count, float* out);

// out[i] = in[i] + scale * noise, by one fused multiply-add; in == nullptr means zeros, in == out is allowed.
// spread: null, or, if `in` is given, per-position factors of the scale: scale * spread[i], rounded once.
void AddNoise(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out,
              const float* spread = nullptr);

// sums[i] += weight * noise in double, where the product of two floats is exact: each addition rounds once.
// squares: null, or squares[i] += square_weight * SquareTerm(noise), computed in the same way.
void AccumulateNoise(uint64_t seed, int64_t begin, int64_t count, float weight, double* sums, float square_weight = 0,
                     double* squares = nullptr);

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_NOISE_H_
