// Weighted sums of noise against their definition one position at a time, and against long double; the same bits with
// any number of threads and from any split.
#include "population/noise_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "c_api/neuroevo.h"
#include "c_api/noise_sum.h"
#include "core/error.h"
#include "core/noise.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (float value : values) bits.push_back(ToBits(value));
  return bits;
}

// Some seeds with upper halves, some weights of another size or sign, every fifth one zero.
struct Some {
  explicit Some(int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      seeds.push_back(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u);
      weights.push_back(i % 5 == 4 ? 0.0f : std::ldexp(static_cast<float>(i % 7 - 3) + 0.3f, static_cast<int>(i % 9)));
    }
  }
  NoiseTerms terms() const { return NonZeroTerms(seeds.data(), weights.data(), static_cast<int64_t>(seeds.size())); }

  std::vector<uint64_t> seeds;
  std::vector<float> weights;
};

std::vector<float> Sum(const NoiseTerms& terms, int64_t begin, int64_t count, ThreadPool* pool, bool squared = false) {
  std::vector<float> out(count, std::nanf(""));
  SumNoise(terms, begin, count, pool, out.data(), squared);
  return out;
}

// Of a noise value.
float Term(float z, bool squared) { return squared ? std::fmaf(z, z, -1.0f) : z; }

std::vector<float> Definition(const Some& some, int64_t begin, int64_t count, bool squared = false) {
  std::vector<float> out;
  for (int64_t p = begin; p < begin + count; ++p) {
    double sum = 0;
    for (size_t i = 0; i < some.seeds.size(); ++i) {
      sum += double{some.weights[i]} * double{Term(Noise(some.seeds[i], p), squared)};
    }
    out.push_back(static_cast<float>(sum));
  }
  return out;
}

}  // namespace

TEST(SumsAreThoseOfTheDefinition) {
  ThreadPool pool(2);
  for (int64_t n : {0, 1, 13}) {
    const Some some(n);
    for (int64_t begin : {int64_t{0}, int64_t{1}, int64_t{1023}, (int64_t{1} << 40) + 6}) {
      for (int64_t count : {0, 1, 3, 15, 16, 17, 127, 255, 256, 257, 2047, 2049, 5003}) {
        for (bool squared : {false, true}) {
          CHECK_EQ(Bits(Sum(some.terms(), begin, count, &pool, squared)),
                   Bits(Definition(some, begin, count, squared)));
        }
      }
    }
  }
}

TEST(ManyTermsAreRoundedOnce) {
  const int64_t n = 5000, d = 700;
  Some some(n);
  for (int64_t i = 0; i < n; ++i) some.weights[i] = static_cast<float>(i % 1999 - 999) / 998.5f;
  ThreadPool pool(2);
  for (bool squared : {false, true}) {
    const std::vector<float> sums = Sum(some.terms(), 0, d, &pool, squared);
    for (int64_t p = 0; p < d; ++p) {
      long double exact = 0;
      for (int64_t i = 0; i < n; ++i) exact += (long double){some.weights[i]} * Term(Noise(some.seeds[i], p), squared);
      CHECK(std::fabs(sums[p] - static_cast<double>(exact)) <= 0x1.01p-24 * std::fabs(static_cast<double>(exact)));
    }
  }
}

TEST(ThreadsDoNotChangeABit) {
  const NoiseTerms terms = Some(40).terms();
  for (int64_t count : {700, 30011}) {
    ThreadPool one(1);
    for (bool squared : {false, true}) {
      const std::vector<float> expected = Sum(terms, 3, count, &one, squared);
      for (int threads : {2, 3, 8}) {
        ThreadPool pool(threads);
        CHECK_EQ(Bits(Sum(terms, 3, count, &pool, squared)), Bits(expected));
      }
    }
  }
}

TEST(PartsHaveTheBitsOfTheWhole) {
  const NoiseTerms terms = Some(20).terms();
  ThreadPool pool(2);
  const int64_t count = 9001;
  const std::vector<float> whole = Sum(terms, 0, count, &pool);
  for (int64_t part : {1, 37, 2048, 4500}) {
    std::vector<float> joined;
    for (int64_t begin = 0; begin < (part == 1 ? 50 : count); begin += part) {
      const std::vector<float> sums = Sum(terms, begin, std::min(part, count - begin), &pool);
      joined.insert(joined.end(), sums.begin(), sums.end());
    }
    CHECK_EQ(Bits(joined), Bits({whole.begin(), whole.begin() + static_cast<int64_t>(joined.size())}));
  }
}

TEST(TheSameBitsOnEveryMachineAndBuild) {
  ThreadPool pool(2);
  for (bool squared : {false, true}) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (float sum : Sum(Some(100).terms(), 0, 20000, &pool, squared)) hash = (hash ^ ToBits(sum)) * 0x100000001b3u;
    CHECK_EQ(hash, squared ? 0xea5c7c14e1dc9444u : 0x22474552027d4a20u);
  }
}

TEST(WithoutTermsOrWithZeroWeightsSumsAreZero) {
  ThreadPool pool(2);
  const std::vector<uint32_t> zeros(33, 0);
  CHECK_EQ(Bits(Sum(NonZeroTerms(nullptr, nullptr, 0), 0, 33, &pool)), zeros);
  const uint64_t seeds[] = {1, 2, 3};
  const float nothing[] = {0.0f, -0.0f, 0.0f}, opposite[] = {0.7f, 0.0f, -0.7f};
  CHECK_EQ(NonZeroTerms(seeds, nothing, 3).seeds.size(), 0);
  CHECK_EQ(Bits(Sum(NonZeroTerms(seeds, nothing, 3), 0, 33, &pool)), zeros);
  const uint64_t same[] = {7, 2, 7};
  CHECK_EQ(Bits(Sum(NonZeroTerms(same, opposite, 3), 0, 33, &pool)), zeros);
}

TEST(ErrorsNameTheValue) {
  const uint64_t seeds[] = {1, 2, 3};
  const float infinite = std::numeric_limits<float>::infinity();
  for (const auto& [bad, name] : {std::pair{std::nanf(""), "nan"}, {infinite, "inf"}, {-infinite, "-inf"}}) {
    const float weights[] = {0.5f, bad, 0.5f};
    CHECK_THROWS(NonZeroTerms(seeds, weights, 3), Concat("weight 1 is ", name, ", expected a finite number"));
  }
  CHECK_THROWS(NonZeroTerms(seeds, nullptr, -1), "the number of seeds is -1, expected 0 or more");
  ThreadPool pool(1);
  CHECK_THROWS(SumNoise({}, -1, 4, &pool, nullptr), "4 positions from -1 on, expected");
  CHECK_THROWS(SumNoise({}, 1, -4, &pool, nullptr), "-4 positions from 1 on, expected");
  CHECK_THROWS(SumNoise({}, INT64_MAX, 2, &pool, nullptr), "that end by 2^62");
}

TEST(TheCInterfaceGivesTheSumOrTheMessage) {
  const Some some(9);
  std::vector<float> out(100);
  for (int squared : {0, 1}) {
    CHECK_EQ(neuroevo_noise_sum(some.seeds.data(), some.weights.data(), 9, 5, 100, squared, out.data()), 0);
    CHECK_EQ(Bits(out), Bits(Definition(some, 5, 100, squared == 1)));
  }
  CHECK(neuroevo_noise_sum(some.seeds.data(), some.weights.data(), 9, -5, 100, 0, out.data()) != 0);
  CHECK_EQ(std::string(neuroevo_last_error()).find("100 positions from -5 on"), 0);
}
