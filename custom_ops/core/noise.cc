// The vectorized noise.h: the same templates on vectors. tests/native/core/noise_test.cc compares it with Noise().
#include "core/noise.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/simd.h"

namespace neuroevo {

namespace {

constexpr int kBlock = 2 * kLanes;  // normals from one vector of radii and one of angles, from kLanes / 2 counters
constexpr int64_t kLine = 64 / sizeof(float);  // floats per cache line
// Prefetch distance, in floats, of the array that noise is added to: the hardware prefetcher alone fetches too few
// cache lines during noise generation. Chosen with forward_bench, where 256 and 4096 perform equally well.
constexpr int64_t kAhead = 1024;
constexpr int kGroup = 4;  // blocks generated together, since the rounds of one block form a dependency chain

struct Keys {
  RawLongs key0[Philox::kRounds], key1[Philox::kRounds];

  explicit Keys(uint64_t seed) {
    uint32_t low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < Philox::kRounds; ++round) {
      key0[round] = RawLongs{} + low;
      key1[round] = RawLongs{} + high;
      low += Philox::kWeyl0;
      high += Philox::kWeyl1;
    }
  }
};

// Lane 2k has counter k and lane 2k + 1 counter k + kLanes / 4, so that the interleaving below gives ascending
// positions.
RawLongs FirstCounters() {
  RawLongs lanes{};
  for (int i = 0; i < kLanes / 2; ++i) lanes[i] = i / 2 + (i % 2) * (kLanes / 4);
  return lanes;
}

struct GroupWords {
  RawWords radius[kGroup], angle[kGroup];
};

// Generate the random words of the next kGroup * kLanes / 2 counters.
inline GroupWords MakeWords(const Keys& keys, RawLongs counters) {
  // A 64-bit lane holds one word of the generator in its lower half. The products ignore the upper halves.
  RawLongs c0[kGroup], c1[kGroup], c2[kGroup], c3[kGroup];
#pragma GCC unroll 4
  for (int b = 0; b < kGroup; ++b) {
    // Counters wrap modulo 2^64 like the scalar code's.
    c0[b] = counters + static_cast<uint64_t>(b * kLanes / 2);
    c1[b] = c0[b] >> 32;
    c2[b] = c3[b] = RawLongs{};
  }
#pragma GCC unroll 10
  for (int round = 0; round < Philox::kRounds; ++round) {
#pragma GCC unroll 4
    for (int b = 0; b < kGroup; ++b) {
      const RawLongs product0 = MulLowHalves(c0[b], RawLongs{} + Philox::kMultiplier0);
      const RawLongs product1 = MulLowHalves(c2[b], RawLongs{} + Philox::kMultiplier1);
      c0[b] = (product1 >> 32) ^ c1[b] ^ keys.key0[round];
      c1[b] = product1;
      c2[b] = (product0 >> 32) ^ c3[b] ^ keys.key1[round];
      c3[b] = product0;
    }
  }
  GroupWords words;
#pragma GCC unroll 4
  for (int b = 0; b < kGroup; ++b) {
    words.radius[b] = JoinLowHalves(c0[b], c2[b]);
    words.angle[b] = JoinLowHalves(c1[b], c3[b]);
  }
  return words;
}

// Call full(i, block) for each whole block of positions begin + i ..., in order, with the first half of the block in
// its first vector, and partial(i, values, n) for the remainders at both ends.
template <class Full, class Partial>
void ForEachBlock(uint64_t seed, int64_t begin, int64_t count, Full full, Partial partial) {
  const Keys keys(seed);
  RawLongs counters = FirstCounters() + static_cast<uint64_t>(begin) / 4;
  GroupWords words;
  int b = kGroup;  // next block in `words`
  for (int64_t i = -(begin % 4); i < count; i += kBlock, ++b) {
    if (b == kGroup) {
      words = MakeWords(keys, counters);
      counters += kGroup * kLanes / 2;
      b = 0;
    }
    const NormalPair<Floats> z = NormalsFromWords<Floats>(Words(words.radius[b]), Words(words.angle[b]));
    const NormalPair<Floats> block = {InterleaveLow(z.first, z.second), InterleaveHigh(z.first, z.second)};
    if (i >= 0 && i + kBlock <= count) {
      full(i, block);
    } else {
      float values[kBlock];
      block.first.Store(values);
      block.second.Store(values + kLanes);
      const int64_t from = std::max<int64_t>(i, 0), to = std::min(i + kBlock, count);
      partial(from, values + (from - i), to - from);
    }
  }
}

// Scale of the noise: one value for all positions, or one value per position.
struct OneScale {
  float scale;
  Floats scales = Floats(scale);

  Floats Lanes(int64_t) const { return scales; }
  float At(int64_t) const { return scale; }
};

struct SpreadScale {
  float scale;
  const float* spread;
  Floats scales = Floats(scale);

  Floats Lanes(int64_t i) const { return Mul(scales, Floats::Load(spread + i)); }
  float At(int64_t i) const { return Mul(scale, spread[i]); }
};

template <class Scale>
void AddNoiseTimes(uint64_t seed, int64_t begin, int64_t count, Scale scale, const float* in, float* out) {
  ForEachBlock(
      seed, begin, count,
      [=](int64_t i, const NormalPair<Floats>& block) {
        for (int64_t line = 0; line < kBlock; line += kLine) {
          __builtin_prefetch(in + i + line + kAhead);
          __builtin_prefetch(out + i + line + kAhead, 1);
        }
        Fma(scale.Lanes(i), block.first, Floats::Load(in + i)).Store(out + i);
        Fma(scale.Lanes(i + kLanes), block.second, Floats::Load(in + i + kLanes)).Store(out + i + kLanes);
      },
      [=](int64_t i, const float* values, int64_t n) {
        for (int64_t j = 0; j < n; ++j) out[i + j] = Fma(scale.At(i + j), values[j], in[i + j]);
      });
}

// sums[i] += weights * lane i.
inline void AddProducts(RawDoubles weights, Floats lanes, double* sums) {
  constexpr int kHalf = kLanes / 2;
  RawDoubles low, high;
  memcpy(&low, sums, sizeof(low));
  memcpy(&high, sums + kHalf, sizeof(high));
  low += weights * HalfToDoubles<0>(lanes);
  high += weights * HalfToDoubles<1>(lanes);
  memcpy(sums, &low, sizeof(low));
  memcpy(sums + kHalf, &high, sizeof(high));
}

}  // namespace

void FillNoise(uint64_t seed, int64_t begin, int64_t count, float* out) {
  ForEachBlock(
      seed, begin, count,
      [=](int64_t i, const NormalPair<Floats>& block) {
        block.first.Store(out + i);
        block.second.Store(out + i + kLanes);
      },
      [=](int64_t i, const float* values, int64_t n) { memcpy(out + i, values, n * sizeof(float)); });
}

void AddNoise(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out,
              const float* spread) {
  if (spread != nullptr) {
    AddNoiseTimes(seed, begin, count, SpreadScale{scale, spread}, in, out);
  } else if (in != nullptr) {
    AddNoiseTimes(seed, begin, count, OneScale{scale}, in, out);
  } else {
    const Floats scales(scale);
    ForEachBlock(
        seed, begin, count,
        [=](int64_t i, const NormalPair<Floats>& block) {
          Fma(scales, block.first, Floats(0.0f)).Store(out + i);
          Fma(scales, block.second, Floats(0.0f)).Store(out + i + kLanes);
        },
        [=](int64_t i, const float* values, int64_t n) {
          for (int64_t j = 0; j < n; ++j) out[i + j] = Fma(scale, values[j], 0.0f);
        });
  }
}

void AccumulateNoise(uint64_t seed, int64_t begin, int64_t count, float weight, double* sums, float square_weight,
                     double* squares) {
  const RawDoubles weights = RawDoubles{} + double{weight}, square_weights = RawDoubles{} + double{square_weight};
  const auto add = [=](auto with_squares) {
    ForEachBlock(
        seed, begin, count,
        [=](int64_t i, const NormalPair<Floats>& block) {
          AddProducts(weights, block.first, sums + i);
          AddProducts(weights, block.second, sums + i + kLanes);
          if constexpr (with_squares()) {
            AddProducts(square_weights, SquareTerm(block.first), squares + i);
            AddProducts(square_weights, SquareTerm(block.second), squares + i + kLanes);
          }
        },
        [=](int64_t i, const float* values, int64_t n) {
          for (int64_t j = 0; j < n; ++j) {
            sums[i + j] += double{weight} * double{values[j]};
            if constexpr (with_squares()) squares[i + j] += double{square_weight} * double{SquareTerm(values[j])};
          }
        });
  };
  squares == nullptr ? add(std::false_type()) : add(std::true_type());
}

}  // namespace neuroevo
