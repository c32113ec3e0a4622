#include "networks/int8/quantize.h"

#include <algorithm>
#include <cstring>

#include "core/simd.h"
#include "networks/int8/rules.h"

namespace neuroevo {

namespace {

// Return the AbsoluteBits of a vector.
RawInts LaneBits(const float* weights) {
  const RawInts bits = (RawInts)ToBits(Floats::Load(weights)).v & 0x7fffffff;
  return bits > 0x7f800000 ? RawInts{} : bits;
}

// Store the lowest byte of every lane.
void StoreBytes(RawInts values, int8_t* out) {
#if defined(NEUROEVO_AVX512)
  const __m128i bytes = _mm512_cvtepi32_epi8((__m512i)values);
  memcpy(out, &bytes, sizeof(bytes));
#else
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = static_cast<int8_t>(values[lane]);
#endif
}

RawInts Max(RawInts a, RawInts b) { return a > b ? a : b; }

}  // namespace

uint32_t LargestBits(const float* weights, int64_t n) {
  constexpr int kVectors = 4;  // independent accumulators, which hide the latency of max
  RawInts largest[kVectors] = {};
  int64_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    for (int v = 0; v < kVectors; ++v) largest[v] = Max(largest[v], LaneBits(weights + i + v * kLanes));
  }
  const RawInts all = Max(Max(largest[0], largest[1]), Max(largest[2], largest[3]));
  uint32_t found = 0;
  for (int lane = 0; lane < kLanes; ++lane) found = std::max(found, static_cast<uint32_t>(all[lane]));
  for (; i < n; ++i) found = std::max(found, int8::AbsoluteBits(weights[i]));
  return found;
}

// Multiplying by a power of two is exact except for results far below 1/2, and adding 1.5 * 2^23 to a number below 2^22
// rounds it to the nearest integer, halves to even: bit-identical to int8::QuantizedWeight.
void Quantize(const float* weights, int64_t n, int exponent, int8_t* out) {
  const Floats scale(FromBits(static_cast<uint32_t>(127 + exponent) << 23)), round(12582912.0f);
  const RawFloats limit = RawFloats{} + int8::kMaxWeight;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    RawFloats scaled = Mul(Floats::Load(weights + i), scale).v;
    scaled = scaled == scaled ? scaled : RawFloats{};
    scaled = scaled > limit ? limit : scaled;
    scaled = scaled < -limit ? -limit : scaled;
    StoreBytes((RawInts)ToBits(Add(scaled, round)).v, out + i);
  }
  for (; i < n; ++i) out[i] = int8::QuantizedWeight(weights[i], exponent);
}

}  // namespace neuroevo
