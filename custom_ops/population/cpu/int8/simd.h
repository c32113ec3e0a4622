// Vectors of bytes for integer networks: products of unsigned by signed bytes, summed in fours into 32-bit lanes.
#ifndef NEUROEVO_POPULATION_CPU_INT8_SIMD_H_
#define NEUROEVO_POPULATION_CPU_INT8_SIMD_H_

#include <cstdint>
#include <cstring>

#include "core/simd.h"

#if !defined(NEUROEVO_AVX512) && !defined(NEUROEVO_AVX2) && defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace neuroevo {

constexpr int kBytes = 4 * kLanes;  // of a vector

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
  // The first n lanes, n <= kLanes.
  void StorePartial(int32_t* p, int n) const { memcpy(p, &v, n * sizeof(int32_t)); }
};

// kLanes groups of four bytes.
struct Bytes {
  RawBytes v;
  static Bytes Load(const void* p) {
    Bytes a;
    memcpy(&a.v, p, sizeof(a.v));
    return a;
  }
  // The same four bytes in every group.
  static Bytes Repeat(const uint8_t* p) {
    uint32_t four;
    memcpy(&four, p, sizeof(four));
    return {(RawBytes)(RawWords{} + four)};
  }
};

// Of pairs of products a sum; it fits 32 bits here.
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

// sum[i] += the products of the four unsigned bytes of group i with its four signed ones. Nothing saturates.
inline Sums AddProducts(Sums sum, Bytes unsigned_bytes, Bytes signed_bytes) {
#if defined(NEUROEVO_AVX512) && defined(__AVX512VNNI__)
  return {(RawInts)_mm512_dpbusd_epi32((__m512i)sum.v, (__m512i)unsigned_bytes.v, (__m512i)signed_bytes.v)};
#else
  const RawUnsignedShorts u = (RawUnsignedShorts)unsigned_bytes.v;
  const RawShorts s = (RawShorts)signed_bytes.v;
  const RawInts even = MultiplyAddPairs((RawShorts)(u & 0xff), s << 8 >> 8);
  const RawInts odd = MultiplyAddPairs((RawShorts)(u >> 8), s >> 8);
  return {sum.v + even + odd};
#endif
}

// In every 16 bytes: a0 b0 a1 b1 ... of their lower or upper halves.
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

// The same with pairs of bytes.
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

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_INT8_SIMD_H_
