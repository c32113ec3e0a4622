// Float arithmetic with bit-identical results on host and device, for single values and vectors.
//
// Only operations that IEEE 754 rounds exactly (add, multiply, fused multiply-add, divide, square root, conversions)
// and integer operations are used, each written out, so that no compiler may contract or reorder them and no libm is
// called. The functions are templates: F = float is the definition, F = Floats (simd.h) the vectorized version. The
// polynomials are minimax fits; no intermediate value is denormal for the stated arguments.
#ifndef NEUROEVO_CORE_PORTABLE_MATH_H_
#define NEUROEVO_CORE_PORTABLE_MATH_H_

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define NEUROEVO_HD __host__ __device__
#else
#define NEUROEVO_HD
#endif

namespace neuroevo {

// On the device these are intrinsics that --fmad and --use_fast_math do not affect.
NEUROEVO_HD inline float Fma(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

NEUROEVO_HD inline float Mul(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

NEUROEVO_HD inline float Add(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

NEUROEVO_HD inline float Sub(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fsub_rn(a, b);
#else
  return a - b;
#endif
}

NEUROEVO_HD inline float Div(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

NEUROEVO_HD inline float Sqrt(float a) {
#ifdef __CUDA_ARCH__
  return __fsqrt_rn(a);
#else
  return __builtin_sqrtf(a);
#endif
}

NEUROEVO_HD inline uint32_t ToBits(float a) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(a);
#else
  uint32_t bits;
  memcpy(&bits, &a, sizeof(bits));
  return bits;
#endif
}

NEUROEVO_HD inline float FromBits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float a;
  memcpy(&a, &bits, sizeof(a));
  return a;
#endif
}

// Convert the bits, as a signed or unsigned integer, to the nearest float.
NEUROEVO_HD inline float SignedToFloat(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __int2float_rn(static_cast<int32_t>(bits));
#else
  return static_cast<float>(static_cast<int32_t>(bits));
#endif
}

NEUROEVO_HD inline float UnsignedToFloat(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint2float_rn(bits);
#else
  return static_cast<float>(bits);
#endif
}

NEUROEVO_HD inline uint32_t ShiftRightSigned(uint32_t bits, int n) {
  return static_cast<uint32_t>(static_cast<int32_t>(bits) >> n);
}

// The integer type of the same width as F: uint32_t for float, Words for Floats.
template <class F>
struct BitsOf;
template <>
struct BitsOf<float> {
  using type = uint32_t;
};

// mask ? a : b, bit by bit.
template <class F, class I>
NEUROEVO_HD inline F Select(I mask, F a, F b) {
  return FromBits((ToBits(a) & mask) | (ToBits(b) & ~mask));
}

// a, but +0 for -0.
template <class F>
NEUROEVO_HD inline F WithoutMinusZero(F a) {
  return Add(a, F(0.0f));
}

// -2 ln(u) for normal u in (0, 1]; about 2 ulp.
template <class F>
NEUROEVO_HD inline F MinusTwoLog(F u) {
  using I = typename BitsOf<F>::type;
  // u = 2^e (1 + f), where 1 + f is in [sqrt(1/2), sqrt(2)).
  const I root_half(0x3f3504f3u);
  const I bits = ToBits(u) - root_half;
  const F e = SignedToFloat(ShiftRightSigned(bits, 23));
  const F f = Add(FromBits((bits & I(0x007fffffu)) + root_half), F(-1.0f));
  // ln(1 + f) = f - f^2 / 2 + f^3 p(f).
  F p(0x1.14573ep-4f);
  p = Fma(p, f, F(-0x1.de3bf8p-4f));
  p = Fma(p, f, F(0x1.e6f08cp-4f));
  p = Fma(p, f, F(-0x1.fc220ep-4f));
  p = Fma(p, f, F(0x1.233766p-3f));
  p = Fma(p, f, F(-0x1.555c4ep-3f));
  p = Fma(p, f, F(0x1.99a4b6p-3f));
  p = Fma(p, f, F(-0x1.000006p-2f));
  p = Fma(p, f, F(0x1.555548p-2f));
  const F square = Mul(f, f);
  // ln(2) as the sum of two floats.
  F log = Fma(Mul(f, square), p, Mul(e, F(-0x1.05c610p-29f)));
  log = Add(f, Fma(F(-0.5f), square, log));
  return Fma(e, F(-0x1.62e430p+0f), Mul(log, F(-2.0f)));
}

template <class F>
struct SinCos {
  F sin, cos;
};

// Sine and cosine of 2 pi turn / 2^32, for an integer turn; about 2 ulp.
template <class F, class I>
NEUROEVO_HD inline SinCos<F> SinCosOfTurn(I turn) {
  // turn = quadrant * 2^30 + rest with rest in [-2^29, 2^29): exact, so the zeros of both functions are exact too.
  const I quadrant = turn + I(0x20000000u);  // in its two upper bits
  const F t = Mul(SignedToFloat(turn << 2), F(0x1p-34f));
  const F square = Mul(t, t);
  F sin(-0x1.2d9bb8p+6f);
  sin = Fma(sin, square, F(0x1.465ec6p+6f));
  sin = Fma(sin, square, F(-0x1.4abbbap+5f));
  sin = Fma(sin, square, F(0x1.921fb6p+2f));
  sin = Mul(sin, t);
  F cos(0x1.d9f7bap+5f);
  cos = Fma(cos, square, F(-0x1.55c664p+6f));
  cos = Fma(cos, square, F(0x1.03c1dep+6f));
  cos = Fma(cos, square, F(-0x1.3bd3ccp+4f));
  cos = Fma(cos, square, F(1.0f));
  // Odd quadrants swap sine and cosine; the quadrant's high bit is the sine's sign, that of the next quadrant the
  // cosine's.
  const I exchange = ShiftRightSigned(quadrant << 1, 31);
  const I difference = (ToBits(sin) ^ ToBits(cos)) & exchange;
  const I sin_sign = quadrant & I(0x80000000u);
  const I cos_sign = (quadrant + I(0x40000000u)) & I(0x80000000u);
  return {FromBits(ToBits(sin) ^ difference ^ sin_sign), FromBits(ToBits(cos) ^ difference ^ cos_sign)};
}

// Hyperbolic tangent; about 2 ulp, exactly +-1 for |x| >= 10, NaN for NaN.
template <class F>
NEUROEVO_HD inline F Tanh(F x) {
  using I = typename BitsOf<F>::type;
  const I magnitude = ToBits(x) & I(0x7fffffffu);
  const I sign = ToBits(x) ^ magnitude;
  // Comparing the bits of non-negative floats as integers compares the floats; the mask is all ones where true.
  const I is_small = ShiftRightSigned(magnitude - I(0x3f200000u), 31);  // |x| < 0.625
  const I is_usual = ShiftRightSigned(magnitude - I(0x41200000u), 31);  // |x| < 10
  const I is_nan = ShiftRightSigned(I(0x7f800000u) - magnitude, 31);
  const F a = Select(is_usual, FromBits(magnitude), F(10.0f));

  const F square = Mul(a, a);  // small: a + a^3 p(a^2)
  F p(-0x1.76abf6p-8f);
  p = Fma(p, square, F(0x1.5256cep-6f));
  p = Fma(p, square, F(-0x1.b84448p-5f));
  p = Fma(p, square, F(0x1.110768p-3f));
  p = Fma(p, square, F(-0x1.555534p-2f));
  const F small = Fma(Mul(p, square), a, a);

  // else: 1 - 2 / (exp(2a) + 1), with exp(2a) = 2^n exp(r). Adding and subtracting 1.5 * 2^23 rounds to an integer.
  const F y = Add(a, a);
  const F shifted = Fma(y, F(0x1.715476p+0f), F(0x1.8p+23f));
  const F n = Add(shifted, F(-0x1.8p+23f));
  const F r = Fma(n, F(0x1.05c610p-29f), Fma(n, F(-0x1.62e430p-1f), y));
  F q(0x1.6db4e4p-10f);
  q = Fma(q, r, F(0x1.123be0p-7f));
  q = Fma(q, r, F(0x1.55545ep-5f));
  q = Fma(q, r, F(0x1.55548ep-3f));
  q = Fma(q, r, F(0.5f));
  const F exp_r = Add(Fma(Mul(r, r), q, r), F(1.0f));
  const F exp = FromBits(ToBits(exp_r) + (ToBits(shifted) << 23));
  const F large = Add(F(1.0f), Div(F(-2.0f), Add(exp, F(1.0f))));

  const F result = Select(is_usual, Select(is_small, small, large), F(1.0f));
  return Select(is_nan, x, FromBits(ToBits(result) | sign));
}

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_PORTABLE_MATH_H_
