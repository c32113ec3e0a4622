// Integer networks on a GPU: results are bit-identical to the CPU's for all weights, sharing of rows, orders in which
// rows are filled, and numbers of threads that fill them.
#include <cmath>
#include <limits>
#include <thread>

#include "native/on_gpu/rows.h"

using namespace neuroevo;

namespace {

const std::vector<std::string> kNetworks = {
    "input uint8 1; dense 1 1",
    "input uint8 7; dense 65 1; relu; dense 3 1; bias; relu",
    "input uint8 300; dense 129 1; bias; relu; dense 513 1; relu; dense 18 1; bias",
    "input uint8 9 7 3; conv 5 3 2 2 same 1.0; bias; relu; conv 7 2 4 1 valid 1.0; relu; dense 3 1.0",
    "input uint8 5 5 1; conv 1 5 5 7 same 1.0; bias",
    "input uint8 16 17 2; conv 16 3 3 1 same 1; bias; relu; conv 40 5 1 3 valid 1; bias; relu; conv 70 1 1 1 same 1; "
    "relu",
    "input uint8 6 6 5; conv 33 3 3 2 same 1; relu; dense 8 1; bias; relu; dense 4 1; bias",
    "input uint8 19 23 4; conv 32 8 8 4 same 1; bias; relu; conv 64 4 4 2 same 1; bias; relu; dense 64 1; relu; "
    "dense 6 1",
};

// Floats of all kinds: every exponent, both signs, ties, NaN and infinity.
std::vector<float> AllKinds(uint64_t seed, int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    const Philox words = PhiloxWords(seed, i);
    values.push_back(
        FromBits(i % 4 == 0 ? words.word[0] : (words.word[0] & 0x80ffffff) | (words.word[1] % 64 + 96) << 23));
    if (i % 8 == 1) values.back() = (static_cast<int>(words.word[2] % 512) - 256) * 0.5f;
  }
  return values;
}

}  // namespace

TEST(EveryKindOfLayerForAnyNumberOfSlotsAndAnySharing) {
  NotForThreadSanitizer();
  const std::vector<int64_t> slots =
      FullSize() ? std::vector<int64_t>{1, 2, 3, 31, 64, 257, 1000} : std::vector<int64_t>{1, 3, 20};
  for (const std::string& text : kNetworks) {
    Both both({text}, FullSize() ? 300 : 9, DType::kInt8, 2);
    both.Fill();
    bool non_zero = false;
    for (int64_t k : slots) {
      for (Sharing sharing : kSharings) {
        const auto rows = RowsOf(sharing, k, both.cpu.population->rows(), 3);
        const std::string what = Concat("'", text, "', ", k, " slots, sharing ", static_cast<int>(sharing));
        non_zero |= AnyNonZero(CheckForward(both, rows, 99, what));
      }
    }
    CHECK(non_zero);
  }
}

TEST(LargeModelForAnyNumberOfSlotsAndAnySharing) {
  NotForThreadSanitizer();
  Both both({kLargeModel}, FullSize() ? 256 : 2, DType::kInt8, 1);
  both.Fill();
  const std::vector<int64_t> slots =
      FullSize() ? std::vector<int64_t>{1, 2, 7, 32, 100, 256, 300} : std::vector<int64_t>{3};
  for (int64_t k : slots) {
    for (Sharing sharing : kSharings) {
      if (!FullSize() && sharing != Sharing::kMixed) continue;
      const auto rows = RowsOf(sharing, k, both.cpu.population->rows(), 4);
      CHECK(AnyNonZero(CheckForward(both, rows, k, Concat(k, " slots, sharing ", static_cast<int>(sharing)))));
    }
  }
}

TEST(AnyWeightsAndObservations) {
  NotForThreadSanitizer();
  const std::string text =
      "input uint8 8 8 2; conv 6 3 3 2 same 1; bias; relu; dense 20 1; bias; relu; dense 5 1; bias";
  Both both({text}, 1, DType::kInt8);
  for (uint64_t seed = 0; seed < (FullSize() ? 200 : 24); ++seed) {
    std::vector<float> theta = AllKinds(seed, both.cpu.D());
    if (seed % 4 == 1) std::fill(theta.begin(), theta.end(), 0.0f);
    if (seed % 4 == 2) {
      for (float& weight : theta) weight = std::fmod(weight, 1.0f);  // NaN of infinities
    }
    if (seed % 4 == 3) {
      for (size_t i = 0; i < theta.size(); ++i) theta[i] = i % 2 == 0 ? 1e20f : 1e-30f;
    }
    auto observations = Observations<uint8_t>(both.cpu.population->networks()[0], 3, seed);
    std::fill(observations.begin(), observations.begin() + 128, 0);
    std::fill(observations.begin() + 128, observations.begin() + 256, 255);
    both.Do([&](Population& population) { population.Assign({0}, {0}, theta.data(), both.cpu.D()); });
    CheckSame(both.gpu.Forward({0, 0, 0}, observations), both.cpu.Forward({0, 0, 0}, observations));
  }
}

TEST(SumsStayInRangeAtTheLargestFanIn) {
  NotForThreadSanitizer();
  Both both({"input uint8 33155; dense 1 1; bias"}, 1, DType::kInt8);
  std::vector<float> theta(33156, 127.0f / 64);
  theta.back() = 1e30f;
  both.Do([&](Population& population) { population.Assign({0}, {0}, theta.data(), 33156); });
  CheckSame(both.gpu.Forward({0}, std::vector<uint8_t>(33155, 255)),
            {static_cast<float>((33155.0 * 255 * 127 + (1 << 30)) / 255 / 64)});
}

TEST(NetworksOfDifferentSizesInOneCallAndPoisonedRows) {
  NotForThreadSanitizer();
  const std::vector<std::string> texts = {
      "input uint8 6 6 4; conv 32 3 3 1 same 1; bias; relu; dense 4 1; bias",
      "input uint8 6 6 4; dense 100 1; bias; relu; dense 4 1",
  };
  Both both(texts, 20, DType::kInt8, 3);
  both.Fill();
  for (Sharing sharing : kSharings) CheckForward(both, RowsOf(sharing, 50, 20, 6), 7, "two networks");
  both.Do([](Population& population) { population.Init({0, 4}, {1, 1}, {10, 11}); });  // rows change their network
  const std::vector<int64_t> rows = {4, 0, 1, 3, 2, 0, 0, 0, 3};
  const auto before = CheckForward(both, rows, 3, "rows that changed");
  const std::vector<float> poison(both.gpu.D(0), std::numeric_limits<float>::quiet_NaN());
  for (int64_t row : {5, 6, 7, 19}) both.gpu.Assign(row, 0, poison);
  CheckSame(CheckForward(both, rows, 3, "poisoned"), before);
}

TEST(ManyThreadsFillRowsThatKeepNoTheta) {
  NotForThreadSanitizer();  // the CPU's tests check the same bookkeeping
  // Like lanes that refill concurrently: chains from parents, seeds and assigned weights, sharing the few scratch rows.
  constexpr int kThreads = 12;
  const std::string text = FullSize() ? std::string(kLargeModel) : kNetworks.back();
  for (int64_t float_rows : {0, 2}) {
    const int64_t own = 3, parents = 2;
    Both both({text}, parents + kThreads * own, DType::kInt8, float_rows);
    both.Do([](Population& population) { population.Init({0, 1}, {0, 0}, {1, 2}); });
    std::vector<std::thread> threads;
    std::vector<std::string> errors(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        try {
          const int64_t row = parents + t * own;
          const std::vector<float> theta(both.gpu.D(0), 0.01f * static_cast<float>(t - 5));
          for (uint64_t i = 0; i < (FullSize() ? 4 : 2); ++i) {
            const uint64_t seed = 100 * t + i;
            both.Do([&](Population& population) {
              population.Init({row, row + 2}, {0, 0}, {seed, seed + 2});
              population.Assign({row + 1}, {0}, theta.data(), static_cast<int64_t>(theta.size()));
              population.Perturb({row, row, row + 1}, {row, row, row + 1}, {seed, 5, 6}, {0.01f, 0.01f, 0.02f});
              if (float_rows > 0) population.Perturb({row + 2}, {t % parents}, {seed}, {0.3f}, {(t + 1) % parents});
            });
            const std::vector<int64_t> rows = {row + 2, 0, row, row + 1, row + 2};
            CheckForward(both, rows, seed, Concat("thread ", t));
          }
        } catch (const std::exception& error) {
          errors[t] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_EQ(errors, std::vector<std::string>(kThreads));
  }
}
