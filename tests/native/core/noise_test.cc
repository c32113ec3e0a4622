// Philox against the known answers of Random123; noise against the formula in double, against its wide version, and
// against the normal distribution; tanh against libm.
#include "core/noise.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/simd.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

void CheckPhilox(Philox counter, uint32_t key0, uint32_t key1, Philox answer) {
  counter.Encrypt(key0, key1);
  for (int i = 0; i < 4; ++i) CHECK_EQ(counter.word[i], answer.word[i]);
}

bool SameBits(const float* a, const float* b, size_t n) { return memcmp(a, b, n * sizeof(float)) == 0; }

// Distance in units of the last place of the float nearest to the exact value.
double Ulps(float value, double exact) {
  const float nearest = static_cast<float>(std::fabs(exact));
  return std::fabs(value - exact) / (std::nextafter(nearest, INFINITY) - nearest);
}

uint64_t Hash(uint64_t hash, const float* values, size_t n) {
  for (size_t i = 0; i < n; ++i) hash = (hash ^ ToBits(values[i])) * 0x100000001b3u;
  return hash;
}

const std::vector<uint64_t> kSeeds = {0, 1, 42, 0xffffffffu, 0x100000000u, 0x0123456789abcdefu, ~uint64_t{0}};

}  // namespace

TEST(PhiloxKnownAnswers) {
  const uint32_t f = 0xffffffffu;
  CheckPhilox({{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}});
  CheckPhilox({{f, f, f, f}}, f, f, {{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}});
  CheckPhilox({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u,
              {{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}});
}

TEST(NoiseFollowsTheFormula) {
  double worst = 0;
  for (uint64_t seed : kSeeds) {
    for (uint64_t counter = 0; counter < 50000; ++counter) {
      const Philox words = PhiloxWords(seed, counter);
      for (int i = 0; i < 4; ++i) {
        const double u = static_cast<float>(words.word[i / 2 * 2]) * 0x1p-32f + 0x1p-33f;
        // The angle is reduced before the multiplication, so that the double value is exact next to its zeros.
        const double turns = words.word[i / 2 * 2 + 1] * 0x1p-32;
        const double quarter = std::floor(turns * 4 + 0.5);
        const double rest = 2 * M_PI * (turns - quarter / 4);
        const int q = static_cast<int>(quarter) + (i % 2 == 0 ? 1 : 0);  // cos is sin a quarter turn ahead
        const double direction = (q & 2 ? -1 : 1) * (q & 1 ? std::cos(rest) : std::sin(rest));
        worst = std::max(worst, Ulps(Noise(seed, counter * 4 + i), std::sqrt(-2 * std::log(u)) * direction));
      }
    }
  }
  std::printf("noise is within %.2f ulp of the formula\n", worst);
  CHECK(worst < 4);
}

TEST(NoiseAtTheEndsOfTheRadius) {
  const NormalPair<float> tail = NormalsFromWords<float>(0u, 0u);  // u = 2^-33, angle 0
  CHECK(Ulps(tail.first, std::sqrt(2 * 33 * M_LN2)) < 4);
  CHECK_EQ(tail.second, 0.0f);
  const NormalPair<float> center = NormalsFromWords<float>(0xffffffffu, 0x20000000u);  // u = 1
  CHECK_EQ(center.first, 0.0f);
  CHECK_EQ(center.second, 0.0f);
  for (uint32_t quarter = 0; quarter < 4; ++quarter) {
    const SinCos<float> axis = SinCosOfTurn<float>(quarter << 30);
    CHECK_EQ(axis.sin, quarter == 1 ? 1.0f : quarter == 3 ? -1.0f : 0.0f);
    CHECK_EQ(axis.cos, quarter == 0 ? 1.0f : quarter == 2 ? -1.0f : 0.0f);
  }
}

TEST(WideNoiseIsScalarNoise) {
  const std::vector<int64_t> begins = {0, 1, 2, 3, 4, 5, 31, 64, 1000003, (int64_t{1} << 34) - 37, INT64_MAX - 400};
  std::vector<float> wide(300), scalar(300), base(300), sum(300), expected(300), spread(300), spread_out(300);
  for (size_t i = 0; i < base.size(); ++i) base[i] = 0.37f * static_cast<float>(i) - 20;
  for (size_t i = 0; i < base.size(); ++i)
    spread[i] = i % 9 == 5 ? 0.0f : std::ldexp(0.7f, static_cast<int>(i % 11) - 7);
  for (uint64_t seed : kSeeds) {
    for (int64_t begin : begins) {
      for (int64_t count : {0, 1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 67, 255, 300}) {
        for (int64_t i = 0; i < count; ++i) {
          scalar[i] = Noise(seed, begin + i);
          expected[i] = Fma(0.02f, scalar[i], base[i]);
          spread_out[i] = std::fmaf(0.02f * spread[i], scalar[i], base[i]);
        }
        std::fill(wide.begin(), wide.end(), 99.0f);
        FillNoise(seed, begin, count, wide.data());
        CHECK(SameBits(wide.data(), scalar.data(), count));
        for (int64_t i = count; i < 300; ++i) CHECK_EQ(wide[i], 99.0f);
        AddNoise(seed, begin, count, 0.02f, base.data(), sum.data());
        CHECK(SameBits(sum.data(), expected.data(), count));
        sum = base;
        AddNoise(seed, begin, count, 0.02f, sum.data(), sum.data());
        CHECK(SameBits(sum.data(), expected.data(), count));
        for (int64_t i = count; i < 300; ++i) CHECK_EQ(sum[i], base[i]);
        AddNoise(seed, begin, count, 0.02f, base.data(), sum.data(), spread.data());
        CHECK(SameBits(sum.data(), spread_out.data(), count));
        for (int64_t i = count; i < 300; ++i) CHECK_EQ(sum[i], base[i]);
        AddNoise(seed, begin, count, 0.02f, nullptr, sum.data());
        for (int64_t i = 0; i < count; ++i) CHECK_EQ(sum[i], 0.02f * scalar[i]);
      }
    }
  }
}

TEST(NoiseIsNormal) {
  const int64_t n = 1 << 22;
  std::vector<float> z(n);
  FillNoise(2026, 0, n, z.data());
  // The same on every machine and build.
  const uint64_t hash = Hash(0xcbf29ce484222325u, z.data(), n);
  std::printf("hash of 2^22 normals: %016llx\n", static_cast<unsigned long long>(hash));
  CHECK_EQ(hash, 0x2137e9a3179143fbu);
  double mean = 0, m2 = 0, m3 = 0, m4 = 0, lag = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double x = z[i];
    mean += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
    if (i > 0) lag += x * z[i - 1];
  }
  // Standard errors of the five, times 5.
  CHECK(std::fabs(mean / n) < 5 / std::sqrt(n));
  CHECK(std::fabs(m2 / n - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::fabs(m3 / n) < 5 * std::sqrt(15.0 / n));
  CHECK(std::fabs(m4 / n - 3) < 5 * std::sqrt(96.0 / n));
  CHECK(std::fabs(lag / n) < 5 / std::sqrt(n));
  // Kolmogorov-Smirnov: the largest distance of the distribution functions; 1.95 / sqrt(n) is the 0.1% point.
  std::sort(z.begin(), z.end());
  double distance = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double phi = 0.5 * std::erfc(-z[i] * M_SQRT1_2);
    distance = std::max({distance, std::fabs(phi - double(i) / n), std::fabs(phi - double(i + 1) / n)});
  }
  CHECK(distance < 1.95 / std::sqrt(n));
  CHECK(z.front() < -4.5f && z.front() > -6.8f);
  CHECK(z.back() > 4.5f && z.back() < 6.8f);
}

TEST(SeedsAreUnrelated) {
  const int64_t n = 1 << 18;
  std::vector<float> a(n), b(n);
  FillNoise(7, 0, n, a.data());
  for (uint64_t seed : {8ull, 7ull + (1ull << 32), 7ull + (1ull << 63)}) {
    FillNoise(seed, 0, n, b.data());
    double product = 0;
    for (int64_t i = 0; i < n; ++i) product += double(a[i]) * b[i];
    CHECK(std::fabs(product / n) < 5 / std::sqrt(n));
  }
}

TEST(TanhIsAccurateAndTheSameWide) {
  double worst = 0;
  uint64_t hash = 0;
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += 4099 * kLanes) {
    float x[kLanes], y[kLanes];
    for (int i = 0; i < kLanes; ++i) x[i] = FromBits((bits + 4099 * i) | (i % 2 == 0 ? 0 : 0x80000000u));
    Tanh(Floats::Load(x)).Store(y);
    for (int i = 0; i < kLanes; ++i) {
      CHECK_EQ(ToBits(y[i]), ToBits(Tanh(x[i])));
      const double exact = std::tanh(double(x[i]));
      if (std::fabs(x[i]) > 1e-30f) worst = std::max(worst, Ulps(std::fabs(y[i]), std::fabs(exact)));
      CHECK_EQ(std::signbit(y[i]), std::signbit(x[i]));
    }
    hash = Hash(hash, y, 4);
  }
  std::printf("tanh is within %.2f ulp\n", worst);
  CHECK(worst < 4);
  CHECK_EQ(Tanh(INFINITY), 1.0f);
  CHECK_EQ(Tanh(-INFINITY), -1.0f);
  CHECK(std::isnan(Tanh(std::nanf(""))));
}
