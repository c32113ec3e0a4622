// Byte vectors for integer networks: products of unsigned and signed bytes, summed in groups of four into 32-bit lanes.
#ifndef NEUROEVO_POPULATION_CPU_INT8_SIMD_H_
#define NEUROEVO_POPULATION_CPU_INT8_SIMD_H_

#include <cstdint>
#include <cstring>

#include "core/simd.h"

#if !defined(NEUROEVO_AVX512) && !defined(NEUROEVO_AVX2) && defined(__SSE2__)
#include <emmintrin.h>
#endif

// Defined if the processor has instructions that multiply four pairs of bytes and add the products to a sum.
#if (defined(NEUROEVO_AVX512) && defined(__AVX512VNNI__)) || (!defined(NEUROEVO_AVX512) && defined(__AVXVNNI__))
#define NEUROEVO_DOT_PRODUCTS 1
#endif

namespace neuroevo {
inline namespace NEUROEVO_WIDTH {

constexpr int kBytes = 4 * kLanes;  // bytes per vector

typedef uint8_t RawBytes __attribute__((vector_size(kBytes)));
typedef int16_t RawShorts __attribute__((vector_size(kBytes)));
typedef uint16_t RawUnsignedShorts __attribute__((vector_size(kBytes)));

// kLanes sums of 32 bits.
struct Sums {
  RawInts v;
  static Sums Load(const int32_t* p) {
    Sums a;
    memcpy(&a.v, p, sizeof(a.v));
    return a;
  }
  void Store(int32_t* p) const { memcpy(p, &v, sizeof(v)); }
  // Stores the first n lanes, n <= kLanes.
  void StorePartial(int32_t* p, int n) const {
    if (n == kLanes) return Store(p);  // the common case, without a call of memcpy
    memcpy(p, &v, n * sizeof(int32_t));
  }
  // Stores the lowest byte of each lane.
  void StoreBytes(uint8_t* p) const {
#if defined(NEUROEVO_AVX512)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8((__m512i)v));
#elif defined(NEUROEVO_AVX2)
    const __m256i first = _mm256_set1_epi32(0x0c080400);  // lowest bytes of the four lanes in each half
    const __m256i fours = _mm256_shuffle_epi8((__m256i)v, first);
    const int low = _mm256_extract_epi32(fours, 0), high = _mm256_extract_epi32(fours, 4);
    memcpy(p, &low, sizeof(low));
    memcpy(p + 4, &high, sizeof(high));
#else
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<uint8_t>(v[i]);
#endif
  }
  int32_t Largest() const {
#if defined(NEUROEVO_AVX512)
    return _mm512_reduce_max_epi32((__m512i)v);
#else
    int32_t largest = v[0];
    for (int i = 1; i < kLanes; ++i) largest = v[i] > largest ? v[i] : largest;
    return largest;
#endif
  }
};

inline Sums Max(Sums a, Sums b) {
#if defined(NEUROEVO_AVX512)
  return {(RawInts)_mm512_max_epi32((__m512i)a.v, (__m512i)b.v)};
#elif defined(NEUROEVO_AVX2)
  return {(RawInts)_mm256_max_epi32((__m256i)a.v, (__m256i)b.v)};
#else
  return {a.v > b.v ? a.v : b.v};
#endif
}

// Shifts lanes as unsigned numbers.
inline Sums ShiftRight(Sums a, int shift) {
#if defined(NEUROEVO_AVX512)
  return {(RawInts)_mm512_srl_epi32((__m512i)a.v, _mm_cvtsi32_si128(shift))};
#elif defined(NEUROEVO_AVX2)
  return {(RawInts)_mm256_srl_epi32((__m256i)a.v, _mm_cvtsi32_si128(shift))};
#else
  return {(RawInts)((RawWords)a.v >> shift)};
#endif
}

// kLanes groups of four bytes.
struct Bytes {
  RawBytes v;
  static Bytes Load(const void* p) {
    Bytes a;
    memcpy(&a.v, p, sizeof(a.v));
    return a;
  }
  // Repeats four bytes in every group.
  static Bytes Repeat(const void* p) {
    uint32_t four;
    memcpy(&four, p, sizeof(four));
    return {(RawBytes)(RawWords{} + four)};
  }
};

// Returns the sums of pairs of products, which fit into 32 bits here.
inline RawInts MultiplyAddPairs(RawShorts a, RawShorts b) {
#if defined(NEUROEVO_AVX512) && defined(__AVX512BW__)
  return (RawInts)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(NEUROEVO_AVX2)
  return (RawInts)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && !defined(NEUROEVO_AVX512)
  return (RawInts)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  const auto even = [](RawShorts x) { return (RawInts)x << 16 >> 16; };
  const auto odd = [](RawShorts x) { return (RawInts)x >> 16; };
  return even(a) * even(b) + odd(a) * odd(b);  // lanes of two shorts, the first in the lower half
#endif
}

// Adds the products of the four unsigned and four signed bytes of group i to sum[i], without saturation.
inline Sums AddProducts(Sums sum, Bytes unsigned_bytes, Bytes signed_bytes) {
#if defined(NEUROEVO_DOT_PRODUCTS) && defined(NEUROEVO_AVX512)
  return {(RawInts)_mm512_dpbusd_epi32((__m512i)sum.v, (__m512i)unsigned_bytes.v, (__m512i)signed_bytes.v)};
#elif defined(NEUROEVO_DOT_PRODUCTS)
  return {(RawInts)_mm256_dpbusd_avx_epi32((__m256i)sum.v, (__m256i)unsigned_bytes.v, (__m256i)signed_bytes.v)};
#else
  const RawUnsignedShorts u = (RawUnsignedShorts)unsigned_bytes.v;
  const RawShorts s = (RawShorts)signed_bytes.v;
  const RawInts even = MultiplyAddPairs((RawShorts)(u & 0xff), s << 8 >> 8);
  const RawInts odd = MultiplyAddPairs((RawShorts)(u >> 8), s >> 8);
  return {sum.v + even + odd};
#endif
}

// Largest unsigned byte of AddSmallProducts: without NEUROEVO_DOT_PRODUCTS, processors add two products of bytes in 16
// bits and saturate.
#if defined(NEUROEVO_DOT_PRODUCTS) || !(defined(NEUROEVO_AVX2) || (defined(NEUROEVO_AVX512) && defined(__AVX512BW__)))
constexpr uint8_t kMaxSmall = 255;
#else
constexpr uint8_t kMaxSmall = 128;  // 2 * 128 * 127 < 2^15
#endif

// The same for unsigned bytes of at most kMaxSmall and signed bytes of at least -127.
inline Sums AddSmallProducts(Sums sum, Bytes unsigned_bytes, Bytes signed_bytes) {
  if constexpr (kMaxSmall == 255) return AddProducts(sum, unsigned_bytes, signed_bytes);
#if defined(NEUROEVO_AVX512) && defined(__AVX512BW__)
  const __m512i pairs = _mm512_maddubs_epi16((__m512i)unsigned_bytes.v, (__m512i)signed_bytes.v);
  return {sum.v + MultiplyAddPairs((RawShorts)pairs, RawShorts{} + 1)};
#elif defined(NEUROEVO_AVX2)
  const __m256i pairs = _mm256_maddubs_epi16((__m256i)unsigned_bytes.v, (__m256i)signed_bytes.v);
  return {sum.v + MultiplyAddPairs((RawShorts)pairs, RawShorts{} + 1)};
#endif
}

// Returns a mask with one bit for each of 64 bytes: whether the byte of a is greater than that of b.
inline uint64_t GreaterMask(const uint8_t* a, const uint8_t* b) {
#if defined(NEUROEVO_AVX512) && defined(__AVX512BW__)
  return _mm512_cmpgt_epu8_mask(_mm512_loadu_si512(a), _mm512_loadu_si512(b));
#elif defined(NEUROEVO_AVX2)
  const auto half = [&](int from) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + from)),
                  y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + from));
    return ~static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(x, y), y)));
  };
  return half(0) | uint64_t{half(32)} << 32;
#else
  uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= uint64_t{a[i] > b[i]} << i;
  return mask;
#endif
}

// Interleaves, within every 16 bytes, the lower or upper halves: a0 b0 a1 b1 ...
inline Bytes InterleaveBytesLow(Bytes a, Bytes b) {
#if defined(NEUROEVO_AVX512) && defined(__AVX512BW__)
  return {(RawBytes)_mm512_unpacklo_epi8((__m512i)a.v, (__m512i)b.v)};
#elif defined(NEUROEVO_AVX2)
  return {(RawBytes)_mm256_unpacklo_epi8((__m256i)a.v, (__m256i)b.v)};
#else
  return {__builtin_shuffle(a.v, b.v, RawBytes{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23})};
#endif
}

inline Bytes InterleaveBytesHigh(Bytes a, Bytes b) {
#if defined(NEUROEVO_AVX512) && defined(__AVX512BW__)
  return {(RawBytes)_mm512_unpackhi_epi8((__m512i)a.v, (__m512i)b.v)};
#elif defined(NEUROEVO_AVX2)
  return {(RawBytes)_mm256_unpackhi_epi8((__m256i)a.v, (__m256i)b.v)};
#else
  return {__builtin_shuffle(a.v, b.v, RawBytes{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31})};
#endif
}

// The same for pairs of bytes.
inline Bytes InterleavePairsLow(Bytes a, Bytes b) {
#if defined(NEUROEVO_AVX512) && defined(__AVX512BW__)
  return {(RawBytes)_mm512_unpacklo_epi16((__m512i)a.v, (__m512i)b.v)};
#elif defined(NEUROEVO_AVX2)
  return {(RawBytes)_mm256_unpacklo_epi16((__m256i)a.v, (__m256i)b.v)};
#else
  return {__builtin_shuffle(a.v, b.v, RawBytes{0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23})};
#endif
}

inline Bytes InterleavePairsHigh(Bytes a, Bytes b) {
#if defined(NEUROEVO_AVX512) && defined(__AVX512BW__)
  return {(RawBytes)_mm512_unpackhi_epi16((__m512i)a.v, (__m512i)b.v)};
#elif defined(NEUROEVO_AVX2)
  return {(RawBytes)_mm256_unpackhi_epi16((__m256i)a.v, (__m256i)b.v)};
#else
  return {__builtin_shuffle(a.v, b.v, RawBytes{8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31})};
#endif
}

}  // namespace NEUROEVO_WIDTH
}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_INT8_SIMD_H_
