// Vectors of floats and of 32-bit words, as wide as the compiler's target has them: 16 lanes with AVX-512, 8 with AVX2
// and FMA, else 4 in portable code. One file, so that everything else is written once. Every operation is the IEEE
// operation of portable_math.h lane by lane, so results do not depend on the width.
#ifndef NEUROEVO_CORE_SIMD_H_
#define NEUROEVO_CORE_SIMD_H_

#include <cstdint>
#include <cstring>

#include "core/portable_math.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define NEUROEVO_AVX512 1
// GCC 12 warns of values that its own header leaves undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__AVX2__) && defined(__FMA__)
#define NEUROEVO_AVX2 1
#include <immintrin.h>
#endif

namespace neuroevo {

#if defined(NEUROEVO_AVX512)
constexpr int kLanes = 16;
constexpr int kVectorRegisters = 32;
#elif defined(NEUROEVO_AVX2)
constexpr int kLanes = 8;
constexpr int kVectorRegisters = 16;
#else
constexpr int kLanes = 4;
constexpr int kVectorRegisters = 16;
#endif

// GCC's vector types have the operators; the structs give them constructors and a namespace to be found in.
typedef float RawFloats __attribute__((vector_size(4 * kLanes)));
typedef uint32_t RawWords __attribute__((vector_size(4 * kLanes)));
typedef int32_t RawInts __attribute__((vector_size(4 * kLanes)));
typedef uint64_t RawLongs __attribute__((vector_size(4 * kLanes)));  // half as many lanes

struct Floats {
  RawFloats v;
  Floats() = default;
  Floats(RawFloats raw) : v(raw) {}
  explicit Floats(float x) {
#if defined(NEUROEVO_AVX512)
    v = _mm512_set1_ps(x);
#elif defined(NEUROEVO_AVX2)
    v = _mm256_set1_ps(x);
#else
    for (int i = 0; i < kLanes; ++i) v[i] = x;
#endif
  }
  static Floats Load(const float* p) {
    Floats a;
    memcpy(&a.v, p, sizeof(a.v));
    return a;
  }
  void Store(float* p) const { memcpy(p, &v, sizeof(v)); }
  // The first n lanes, n <= kLanes.
  void StorePartial(float* p, int n) const {
#if defined(NEUROEVO_AVX512)
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
#else
    memcpy(p, &v, n * sizeof(float));
#endif
  }
};

struct Words {
  RawWords v;
  Words() = default;
  Words(RawWords raw) : v(raw) {}
  explicit Words(uint32_t x) : v(RawWords{} + x) {}
};

template <>
struct BitsOf<Floats> {
  using type = Words;
};

inline Words operator+(Words a, Words b) { return a.v + b.v; }
inline Words operator-(Words a, Words b) { return a.v - b.v; }
inline Words operator&(Words a, Words b) { return a.v & b.v; }
inline Words operator|(Words a, Words b) { return a.v | b.v; }
inline Words operator^(Words a, Words b) { return a.v ^ b.v; }
inline Words operator~(Words a) { return ~a.v; }
inline Words operator<<(Words a, int n) { return a.v << n; }
inline Words operator>>(Words a, int n) { return a.v >> n; }
inline Words ShiftRightSigned(Words a, int n) { return (RawWords)((RawInts)a.v >> n); }

inline Words ToBits(Floats a) { return (RawWords)a.v; }
inline Floats FromBits(Words a) { return (RawFloats)a.v; }
inline Floats Add(Floats a, Floats b) { return a.v + b.v; }
inline Floats Mul(Floats a, Floats b) { return a.v * b.v; }
inline Floats Div(Floats a, Floats b) { return a.v / b.v; }

inline Floats Fma(Floats a, Floats b, Floats c) {
#if defined(NEUROEVO_AVX512)
  return _mm512_fmadd_ps(a.v, b.v, c.v);
#elif defined(NEUROEVO_AVX2)
  return _mm256_fmadd_ps(a.v, b.v, c.v);
#else
  for (int i = 0; i < kLanes; ++i) c.v[i] = Fma(a.v[i], b.v[i], c.v[i]);
  return c;
#endif
}

inline Floats Sqrt(Floats a) {
#if defined(NEUROEVO_AVX512)
  return _mm512_sqrt_ps(a.v);
#elif defined(NEUROEVO_AVX2)
  return _mm256_sqrt_ps(a.v);
#else
  for (int i = 0; i < kLanes; ++i) a.v[i] = Sqrt(a.v[i]);
  return a;
#endif
}

// x > 0 ? x : 0, so 0 for NaN.
inline Floats Relu(Floats a) {
#if defined(NEUROEVO_AVX512)
  return _mm512_max_ps(a.v, _mm512_setzero_ps());
#elif defined(NEUROEVO_AVX2)
  return _mm256_max_ps(a.v, _mm256_setzero_ps());
#else
  return a.v > 0.0f ? a.v : RawFloats{};
#endif
}

inline Floats SignedToFloat(Words a) { return __builtin_convertvector((RawInts)a.v, RawFloats); }

inline Floats UnsignedToFloat(Words a) {
#if defined(NEUROEVO_AVX512)
  return _mm512_cvtepu32_ps((__m512i)a.v);
#else
  // Both halves convert exactly, so the sum is rounded once: to the nearest float.
  return Fma(SignedToFloat(a >> 16), Floats(65536.0f), SignedToFloat(a & Words(0xffffu)));
#endif
}

// Products of the lower halves of 64-bit lanes.
inline RawLongs MulLowHalves(RawLongs a, RawLongs b) {
#if defined(NEUROEVO_AVX512)
  return (RawLongs)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(NEUROEVO_AVX2)
  return (RawLongs)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

// In every group of four lanes: a0 b0 a1 b1 (low) or a2 b2 a3 b3 (high).
inline Floats InterleaveLow(Floats a, Floats b) {
#if defined(NEUROEVO_AVX512)
  return _mm512_unpacklo_ps(a.v, b.v);
#elif defined(NEUROEVO_AVX2)
  return _mm256_unpacklo_ps(a.v, b.v);
#else
  return __builtin_shuffle(a.v, b.v, RawInts{0, 4, 1, 5});
#endif
}

inline Floats InterleaveHigh(Floats a, Floats b) {
#if defined(NEUROEVO_AVX512)
  return _mm512_unpackhi_ps(a.v, b.v);
#elif defined(NEUROEVO_AVX2)
  return _mm256_unpackhi_ps(a.v, b.v);
#else
  return __builtin_shuffle(a.v, b.v, RawInts{2, 6, 3, 7});
#endif
}

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_SIMD_H_
