// Weighted sums of noise, compared with their definition position by position and with long double; bit-identical for
// all numbers of threads and splits.
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

// Seeds, some with nonzero upper halves, and weights of different sizes and signs, every fifth of which is zero.
struct Some {
  explicit Some(int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      seeds.push_back(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u);
      weights.push_back(i % 5 == 4 ? 0.0f : std::ldexp(static_cast<float>(i % 7 - 3) + 0.3f, static_cast<int>(i % 9)));
      square_weights.push_back(i % 4 == 3 ? 0.0f : static_cast<float>(i % 11) - 4.1f);
    }
  }
  NoiseTerms terms() const {
    return NonZeroTerms(seeds.data(), weights.data(), square_weights.data(), static_cast<int64_t>(seeds.size()));
  }

  std::vector<uint64_t> seeds;
  std::vector<float> weights, square_weights;
};

// Returns the sums of noise; with squares, followed by the sums of squares.
std::vector<float> Sum(const NoiseTerms& terms, int64_t begin, int64_t count, ThreadPool* pool, bool squares = false) {
  std::vector<float> out(squares ? 2 * count : count, std::nanf(""));
  SumNoise(terms, begin, count, pool, out.data(), squares ? out.data() + count : nullptr);
  return out;
}

// Returns the term of a noise value.
float Term(float z, bool square) { return square ? std::fmaf(z, z, -1.0f) : z; }

std::vector<float> Definition(const Some& some, int64_t begin, int64_t count, bool squares = false) {
  std::vector<float> out;
  for (bool square : squares ? std::vector<bool>{false, true} : std::vector<bool>{false}) {
    for (int64_t p = begin; p < begin + count; ++p) {
      double sum = 0;
      for (size_t i = 0; i < some.seeds.size(); ++i) {
        const float weight = square ? some.square_weights[i] : some.weights[i];
        sum += double{weight} * double{Term(Noise(some.seeds[i], p), square)};
      }
      out.push_back(static_cast<float>(sum));
    }
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
        for (bool squares : {false, true}) {
          CHECK_EQ(Bits(Sum(some.terms(), begin, count, &pool, squares)),
                   Bits(Definition(some, begin, count, squares)));
        }
      }
    }
  }
}

TEST(ManyTermsAreRoundedOnce) {
  const int64_t n = 5000, d = 700;
  Some some(n);
  for (int64_t i = 0; i < n; ++i) some.weights[i] = static_cast<float>(i % 1999 - 999) / 998.5f;
  some.square_weights = some.weights;
  ThreadPool pool(2);
  const std::vector<float> sums = Sum(some.terms(), 0, d, &pool, true);
  for (int64_t i = 0; i < 2 * d; ++i) {
    long double exact = 0;
    for (int64_t j = 0; j < n; ++j) exact += (long double){some.weights[j]} * Term(Noise(some.seeds[j], i % d), i >= d);
    CHECK(std::fabs(sums[i] - static_cast<double>(exact)) <= 0x1.01p-24 * std::fabs(static_cast<double>(exact)));
  }
}

TEST(ThreadsDoNotChangeABit) {
  const NoiseTerms terms = Some(40).terms();
  for (int64_t count : {700, 30011}) {
    ThreadPool one(1);
    const std::vector<float> expected = Sum(terms, 3, count, &one, true);
    for (int threads : {2, 3, 8}) {
      ThreadPool pool(threads);
      CHECK_EQ(Bits(Sum(terms, 3, count, &pool, true)), Bits(expected));
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
  Some some(100);
  some.square_weights = some.weights;
  const std::vector<float> sums = Sum(some.terms(), 0, 20000, &pool, true);
  for (bool squares : {false, true}) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < 20000; ++i) hash = (hash ^ ToBits(sums[squares ? 20000 + i : i])) * 0x100000001b3u;
    CHECK_EQ(hash, squares ? 0xea5c7c14e1dc9444u : 0x22474552027d4a20u);
  }
}

TEST(WithoutTermsOrWithZeroWeightsSumsAreZero) {
  ThreadPool pool(2);
  const std::vector<uint32_t> zeros(33, 0);
  CHECK_EQ(Bits(Sum(NonZeroTerms(nullptr, nullptr, nullptr, 0), 0, 33, &pool)), zeros);
  CHECK_EQ(Bits(Sum(NonZeroTerms(nullptr, nullptr, nullptr, 0), 0, 33, &pool, true)), std::vector<uint32_t>(66, 0));
  const uint64_t seeds[] = {1, 2, 3};
  const float nothing[] = {0.0f, -0.0f, 0.0f}, opposite[] = {0.7f, 0.0f, -0.7f};
  CHECK_EQ(NonZeroTerms(seeds, nothing, nothing, 3).seeds.size(), 0);
  CHECK_EQ(NonZeroTerms(seeds, nothing, opposite, 3).seeds.size(), 2);
  CHECK_EQ(Bits(Sum(NonZeroTerms(seeds, nothing, nullptr, 3), 0, 33, &pool)), zeros);
  const uint64_t same[] = {7, 2, 7};
  CHECK_EQ(Bits(Sum(NonZeroTerms(same, opposite, nullptr, 3), 0, 33, &pool)), zeros);
}

TEST(ErrorsNameTheValue) {
  const uint64_t seeds[] = {1, 2, 3};
  const float infinite = std::numeric_limits<float>::infinity();
  for (const auto& [bad, name] : {std::pair{std::nanf(""), "nan"}, {infinite, "inf"}, {-infinite, "-inf"}}) {
    const float weights[] = {0.5f, bad, 0.5f};
    const float good[] = {1, 2, 3};
    CHECK_THROWS(NonZeroTerms(seeds, weights, good, 3), Concat("weight 1 is ", name, ", expected a finite number"));
    CHECK_THROWS(NonZeroTerms(seeds, good, weights, 3), Concat("square weight 1 is ", name, ", expected a finite"));
  }
  CHECK_THROWS(NonZeroTerms(seeds, nullptr, nullptr, -1), "the number of seeds is -1, expected 0 or more");
  ThreadPool pool(1);
  CHECK_THROWS(SumNoise({}, -1, 4, &pool, nullptr), "begin is -1 and count is 4, expected");
  CHECK_THROWS(SumNoise({}, 1, -4, &pool, nullptr), "begin is 1 and count is -4, expected");
  CHECK_THROWS(SumNoise({}, INT64_MAX, 2, &pool, nullptr), "a sum of at most 2^62");
}

TEST(TheCInterfaceGivesTheSumOrTheMessage) {
  const Some some(9);
  const uint64_t* seeds = some.seeds.data();
  std::vector<float> out(200);
  CHECK_EQ(neuroevo_noise_sum(seeds, some.weights.data(), 9, 5, 100, out.data(), some.square_weights.data(), &out[100]),
           0);
  CHECK_EQ(Bits(out), Bits(Definition(some, 5, 100, true)));
  std::vector<float> alone(100);
  CHECK_EQ(neuroevo_noise_sum(seeds, some.weights.data(), 9, 5, 100, alone.data(), nullptr, nullptr), 0);
  CHECK_EQ(Bits(alone), Bits(Definition(some, 5, 100)));
  CHECK(neuroevo_noise_sum(seeds, some.weights.data(), 9, -5, 100, out.data(), nullptr, nullptr) != 0);
  CHECK_EQ(std::string(neuroevo_last_error()).find("begin is -5 and count is 100"), 0);
}
