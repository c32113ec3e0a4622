// Weighted sums of noise on the GPU are bit-identical to the CPU's.
#include "population/cuda/noise_sum.h"

#include <cmath>

#include "c_api/neuroevo.h"
#include "c_api/noise_sum.h"
#include "core/noise.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

NoiseTerms SomeTerms(int64_t n) {
  std::vector<uint64_t> seeds;
  std::vector<float> weights, square_weights;
  for (int64_t i = 0; i < n; ++i) {
    seeds.push_back(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u);
    weights.push_back(static_cast<float>(i % 7) - 2.7f);
    square_weights.push_back(static_cast<float>(i % 5) - 1.3f);
  }
  return NonZeroTerms(seeds.data(), weights.data(), square_weights.data(), n);
}

std::vector<uint32_t> Bits(const float* values, int64_t n) {
  std::vector<uint32_t> bits;
  for (int64_t i = 0; i < n; ++i) bits.push_back(ToBits(values[i]));
  return bits;
}

}  // namespace

TEST(SumsHaveTheCpusBits) {
  ThreadPool pool(2);
  for (int64_t n : {0, 1, 21}) {
    const NoiseTerms terms = SomeTerms(n);
    for (int64_t begin : {int64_t{0}, int64_t{3}, (int64_t{1} << 40) + 6}) {
      for (int64_t count : {1, 2, 1023, 1024, 1025, 4099}) {
        std::vector<float> expected(count), found(count + 8, 99.0f), expected_squares = expected, squares = found;
        for (bool both : {false, true}) {
          SumNoise(terms, begin, count, &pool, expected.data(), both ? expected_squares.data() : nullptr);
          cuda::SumNoise(terms, begin, count, found.data(), both ? squares.data() : nullptr);
          CHECK_EQ(Bits(found.data(), count), Bits(expected.data(), count));
        }
        CHECK_EQ(Bits(squares.data(), count), Bits(expected_squares.data(), count));
        for (int i = 0; i < 8; ++i) CHECK_EQ(found[count + i], 99.0f), CHECK_EQ(squares[count + i], 99.0f);
      }
    }
  }
  cuda::SumNoise(SomeTerms(3), 7, 0, nullptr);
}

TEST(TheCInterfaceGivesTheSumOrTheMessage) {
  const NoiseTerms terms = SomeTerms(5);
  std::vector<float> expected(77), found(77), expected_squares(77), squares(77);
  const uint64_t* seeds = terms.seeds.data();
  const float *given = terms.weights.data(), *square_weights = terms.square_weights.data();
  CHECK_EQ(neuroevo_noise_sum(seeds, given, 5, 2, 77, expected.data(), square_weights, expected_squares.data()), 0);
  CHECK_EQ(neuroevo_cuda_noise_sum(seeds, given, 5, 2, 77, found.data(), square_weights, squares.data()), 0);
  CHECK_EQ(Bits(found.data(), 77), Bits(expected.data(), 77));
  CHECK_EQ(Bits(squares.data(), 77), Bits(expected_squares.data(), 77));
  const float weights[] = {1.0f, std::nanf("")};
  CHECK(neuroevo_cuda_noise_sum(seeds, weights, 2, 0, 77, found.data(), nullptr, nullptr) != 0);
  CHECK_EQ(std::string(neuroevo_last_error()), "weight 1 is nan, expected a finite number");
  CHECK(neuroevo_cuda_noise_sum(seeds, weights, 1, 0, -1, found.data(), nullptr, nullptr) != 0);
  CHECK_EQ(std::string(neuroevo_last_error()).find("begin is 0 and count is -1"), 0);
}
