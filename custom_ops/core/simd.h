// Vectors of floats and of 32-bit words, as wide as the compiler's target supports: 16 lanes with AVX-512, 8 with AVX2
// and FMA, otherwise 4 in portable code. Only this file depends on the width. Every operation is the IEEE operation of
// portable_math.h in each lane, so results do not depend on the width.
#ifndef NEUROEVO_CORE_SIMD_H_
#define NEUROEVO_CORE_SIMD_H_

#include <cstdint>
#include <cstring>

#include "core/portable_math.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define NEUROEVO_AVX512 1
// GCC 12 warns about values that its own header leaves undefined on purpose (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__AVX2__) && defined(__FMA__)
#define NEUROEVO_AVX2 1
#include <immintrin.h>
#endif

// Code that uses vectors is in a namespace named after their width: otherwise libraries of different widths in one
// process would share functions and tables of the same name but different code and size.
#if defined(NEUROEVO_AVX512)
#define NEUROEVO_WIDTH lanes16
#elif defined(NEUROEVO_AVX2)
#define NEUROEVO_WIDTH lanes8
#else
#define NEUROEVO_WIDTH lanes4
#endif

namespace neuroevo {
inline namespace NEUROEVO_WIDTH {

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

// GCC's vector types provide the operators; the structs add constructors and a namespace for name lookup.
typedef float RawFloats __attribute__((vector_size(4 * kLanes)));
typedef uint32_t RawWords __attribute__((vector_size(4 * kLanes)));
typedef int32_t RawInts __attribute__((vector_size(4 * kLanes)));
typedef uint64_t RawLongs __attribute__((vector_size(4 * kLanes)));  // half as many lanes
typedef double RawDoubles __attribute__((vector_size(4 * kLanes)));  // half as many lanes

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
    if (n == kLanes) return Store(p);  // the common case, without a call of memcpy
    memcpy(p, &v, n * sizeof(float));
#endif
  }
};

struct Words {
  RawWords v;
  Words() = default;
  Words(RawWords raw) : v(raw) {}
  explicit Words(uint32_t x) : v(RawWords{} + x) {
#if defined(NEUROEVO_AVX2)
    // When registers are short, GCC would rebuild constants in each loop iteration with three instructions. It keeps
    // values of unknown origin in memory instead.
    asm("" : "+x"(v));
#endif
  }
  void Store(int32_t* p) const { memcpy(p, &v, sizeof(v)); }
};

}  // namespace NEUROEVO_WIDTH

template <>
struct BitsOf<Floats> {
  using type = Words;
};

inline namespace NEUROEVO_WIDTH {

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
inline Floats Sub(Floats a, Floats b) { return a.v - b.v; }
inline Floats Mul(Floats a, Floats b) { return a.v * b.v; }
inline Floats Div(Floats a, Floats b) { return a.v / b.v; }

inline Floats Fma(Floats a, Floats b, Floats c) {
#if defined(NEUROEVO_AVX512)
  return _mm512_fmadd_ps(a.v, b.v, c.v);
#elif defined(NEUROEVO_AVX2)
  return _mm256_fmadd_ps(a.v, b.v, c.v);
#else
  for (int i = 0; i < kLanes; ++i) c.v[i] = neuroevo::Fma(a.v[i], b.v[i], c.v[i]);
  return c;
#endif
}

inline Floats Sqrt(Floats a) {
#if defined(NEUROEVO_AVX512)
  return _mm512_sqrt_ps(a.v);
#elif defined(NEUROEVO_AVX2)
  return _mm256_sqrt_ps(a.v);
#else
  for (int i = 0; i < kLanes; ++i) a.v[i] = neuroevo::Sqrt(a.v[i]);
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

// a > b ? a : b, so b for NaN.
inline Floats Max(Floats a, Floats b) {
#if defined(NEUROEVO_AVX512)
  return _mm512_max_ps(a.v, b.v);
#elif defined(NEUROEVO_AVX2)
  return _mm256_max_ps(a.v, b.v);
#else
  return a.v > b.v ? a.v : b.v;
#endif
}

// Bit mask with one bit per lane; the first lane is the lowest bit.
using LaneMask = uint32_t;

inline LaneMask FirstLanes(int64_t n) { return (LaneMask{1} << n) - 1; }

// Mask of the lanes with any bit set, such as -0.
inline LaneMask AnyBit(Words a) {
#if defined(NEUROEVO_AVX512)
  return _mm512_test_epi32_mask((__m512i)a.v, (__m512i)a.v);
#elif defined(NEUROEVO_AVX2)
  const __m256i zero = _mm256_cmpeq_epi32((__m256i)a.v, _mm256_setzero_si256());
  return 0xffu & ~static_cast<LaneMask>(_mm256_movemask_ps(_mm256_castsi256_ps(zero)));
#else
  LaneMask mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= LaneMask{a.v[i] != 0} << i;
  return mask;
#endif
}

// Mask of the lanes that are not zero; NaN counts as nonzero.
inline LaneMask NonZero(Floats a) {
#if defined(NEUROEVO_AVX512)
  return _mm512_cmp_ps_mask(a.v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
#elif defined(NEUROEVO_AVX2)
  return static_cast<LaneMask>(_mm256_movemask_ps(_mm256_cmp_ps(a.v, _mm256_setzero_ps(), _CMP_NEQ_UQ)));
#else
  LaneMask mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= LaneMask{a.v[i] != 0} << i;
  return mask;
#endif
}

#if !defined(NEUROEVO_AVX512)
// Table of lane indices: for each mask, the indices of its lanes in ascending order, then zeros.
struct LaneTable {
  uint8_t lanes[1 << kLanes][kLanes] = {};
  constexpr LaneTable() {
    for (int mask = 0; mask < 1 << kLanes; ++mask) {
      for (int lane = 0, count = 0; lane < kLanes; ++lane) {
        if (mask >> lane & 1) lanes[mask][count++] = static_cast<uint8_t>(lane);
      }
    }
  }
};
inline constexpr LaneTable kLaneTable;
#endif

// Indices of the mask's lanes in ascending order; the entries after them are unspecified.
inline Words LanesOf(LaneMask mask) {
#if defined(NEUROEVO_AVX512)
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return (RawWords)_mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), lanes);
#elif defined(NEUROEVO_AVX2)
  return (RawWords)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLaneTable.lanes[mask])));
#else
  RawWords lanes{};
  for (int i = 0; i < kLanes; ++i) lanes[i] = kLaneTable.lanes[mask][i];
  return lanes;
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

// Convert the first (0) or second (1) half of the lanes.
template <int kHalf>
inline RawDoubles HalfToDoubles(Floats a) {
#if defined(NEUROEVO_AVX512)
  return _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, kHalf));
#elif defined(NEUROEVO_AVX2)
  return _mm256_cvtps_pd(_mm256_extractf128_ps(a.v, kHalf));
#else
  return RawDoubles{a.v[2 * kHalf], a.v[2 * kHalf + 1]};
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

// Interleave the lower halves of 64-bit lanes: those of a in the even lanes of the result, those of b in the odd lanes.
inline RawWords JoinLowHalves(RawLongs a, RawLongs b) {
#if defined(NEUROEVO_AVX512)
  return (RawWords)_mm512_mask_shuffle_epi32((__m512i)a, 0xaaaa, (__m512i)b, _MM_PERM_CCAA);
#elif defined(NEUROEVO_AVX2)
  return (RawWords)_mm256_blend_epi32((__m256i)a, _mm256_slli_epi64((__m256i)b, 32), 0xaa);
#else
  return (RawWords)((a & 0xffffffffu) | (b << 32));
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

}  // namespace NEUROEVO_WIDTH
}  // namespace neuroevo

#endif  // NEUROEVO_CORE_SIMD_H_
