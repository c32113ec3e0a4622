// Members of low rank on a GPU are bit-identical to the CPU's, for every kind of layer and any other slots of the call.
#include "networks/low_rank.h"

#include "native/on_gpu/rows.h"

using namespace neuroevo;

namespace {

constexpr int64_t kCenters = 3, kRows = 12;

// Rows [3, 12) are members of rows 0, 1 and 2, some of scale 0.
Both MakeMembers(const std::vector<std::string>& texts, int rank) {
  Both both(texts, kRows, DType::kFloat32, kCenters, rank);
  const int32_t networks = static_cast<int32_t>(texts.size());
  both.Do([&](Population& population) {
    for (int64_t row = 0; row < kCenters; ++row) {
      population.Init({row}, {static_cast<int32_t>(row) % networks}, {static_cast<uint64_t>(row + 1)});
      population.Perturb({row}, {row}, {9}, {0.05f});
    }
    std::vector<int64_t> rows, centers;
    std::vector<uint64_t> seeds;
    std::vector<float> scales;
    for (int64_t row = kCenters; row < kRows; ++row) {
      rows.push_back(row);
      centers.push_back(row % kCenters);
      seeds.push_back(100 + row / 2);
      scales.push_back(row == 7 ? 0.0f : row % 2 == 0 ? 0.1f : -0.1f);
    }
    population.Perturb(rows, centers, seeds, scales);
  });
  return both;
}

void SetReference(Both* both, size_t count) {
  const Network& network = both->cpu.population->networks()[0];
  const auto set = [&](const auto& batch) {
    both->Do([&](Population& p) { p.SetReference(batch.data(), static_cast<int64_t>(count)); });
  };
  if (network.input_dtype() == DType::kUint8) {
    set(Observations<uint8_t>(network, count, 17));
  } else {
    set(Observations<float>(network, count, 17));
  }
}

}  // namespace

TEST(EveryKindOfLayer) {
  NotForThreadSanitizer();
  for (const std::string text : {
           "input float32 1; dense 1 1",
           "input float32 376; vbn; dense 64 1; bias; tanh; dense 33 1; vbn; tanh; dense 17 1; bias; vbn",
           "input float32 33; bias; relu; dense 31 1; silu; bias; dense 129 1; layer_norm; gelu; bias",
           "input float32 7 10 3; conv 5 3 2 2 same 1; vbn; bias; tanh; conv 19 2 3 1 valid 1; vbn; relu; dense 9 1",
           "input float32 8 9 5; max_pool 3 2 2 same; bias; conv 70 3 3 1 same 1; bias; leaky_relu 0.2; dense 7 1; "
           "bias",
           "input uint8 50; dense 20 1; vbn; bias; relu; dense 4 1",
           "input uint8 19 23 4; conv 12 8 8 4 same 1; bias; relu; dense 64 1; relu; dense 6 1; bias",
           "input uint8 9 11 2; vbn; conv 6 3 3 2 same 1; vbn; bias; relu; dense 5 1; vbn",
       }) {
    for (int rank : {1, 3}) {
      Both both = MakeMembers({text}, rank);
      SetReference(&both, 3);
      both.Do([](Population& p) { p.Prepare({11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}); });
      const std::string what = Concat("'", text, "' of rank ", rank);
      for (int64_t row = 0; row < kRows; ++row) {
        CheckSame(both.gpu.Read(row), both.cpu.Read(row), Concat(what, ", weights of row ", row));
        CheckSame(both.gpu.population->Statistics(row), both.cpu.population->Statistics(row), what);
      }
      for (Sharing sharing : kSharings) {
        CHECK(AnyNonZero(CheckForward(both, RowsOf(sharing, 40, kRows, 3), 99, what)));
      }
    }
  }
}

TEST(LargeModel) {
  NotForThreadSanitizer();
  const Both both = MakeMembers({kLargeModel}, 1);
  CheckForward(both, FullSize() ? RowsOf(Sharing::kMixed, 300, kRows, 4) : std::vector<int64_t>{5, 8, 3, 0}, 5, "");
}

TEST(TwoNetworksAndRowsThatAreFilledAnew) {
  NotForThreadSanitizer();
  Both both = MakeMembers({"input float32 6 6 2; conv 3 3 3 1 same 1; relu; dense 4 1; bias",
                           "input float32 6 6 2; dense 11 1; tanh; dense 4 1"},
                          2);
  const auto forward = [&] { CheckForward(both, {4, 0, 3, 2, 8, 4, 11, 1, 7}, 3, "two networks"); };
  forward();
  both.Do([](Population& p) { p.Perturb({3, 4}, {1, 2}, {5, 6}, {0.5f, 0.25f}); });
  forward();
  both.Do([](Population& p) { p.Perturb({2}, {0}, {5}, {0.5f}); });
  CHECK_THROWS(forward(), "row 4 is a member of row 2, which has been filled");
}

TEST(AStateGoesOn) {
  NotForThreadSanitizer();
  Both both = MakeMembers({"input float32 9; dense 12 1; bias; relu; lstm 7 1; dense 4 1; bias"}, 2);
  const std::vector<int64_t> rows = {3, 3, 0, 8, 11, 5}, states = {4, 0, 3, 1, 2, 5};
  both.Do([&](Population& p) { p.ClearStates(states); });
  for (uint64_t step = 0; step < 3; ++step) {
    const auto observations = Observations<float>(both.cpu.population->networks()[0], rows.size(), step);
    std::vector<std::vector<float>> outs;
    both.Do([&](Population& p) {
      outs.emplace_back(rows.size() * 4);
      p.Forward(rows, observations.data(), outs.back().data(), states);
    });
    CheckSame(outs[0], outs[1], Concat("step ", step));
  }
}

TEST(ErrorsNameTheRow) {
  Both both = MakeMembers({"input float32 6; dense 4 1; bias"}, 2);
  both.Do([&](Population& p) {
    const std::vector<float> seen(6);
    std::vector<float> out(100);
    CHECK_THROWS(p.Init({3}, {0}, {1}), "row 3 is a member");
    CHECK_THROWS(p.Perturb({4}, {3}, {1}, {0.5f}), "src row 3 is a member");
    p.Init({0}, {0}, {8});
    CHECK_THROWS(p.Forward({3}, seen.data(), out.data()), "row 3 is a member of row 0, which has been filled");
    p.Forward({4}, seen.data(), out.data());
  });
  CHECK_THROWS(Rows(NEUROEVO_CUDA_BACKEND, {"input uint8 4; dense 3 1"}, 3, DType::kInt8, 1, 1),
               "rank is 1 with dtype int8");
}
