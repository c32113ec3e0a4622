// Float32 networks on a GPU: every result is bit-identical to the CPU's, for every kind of layer, number of slots and
// sharing of rows, and does not depend on the other slots of a call.
#include <cmath>
#include <limits>
#include <thread>

#include "native/on_gpu/rows.h"

using namespace neuroevo;

namespace {

const std::vector<std::string> kNetworks = {
    "input float32 1; dense 1 1",
    "input float32 17; dense 5 1; tanh; dense 3 1; bias",
    "input float32 376; dense 256 1; bias; tanh; dense 256 1; bias; relu; dense 17 1; bias; tanh",
    "input float32 33; bias; relu; dense 31 1; tanh; bias; relu; dense 47 1; relu; relu; bias; dense 129 1",
    "input float32 4 6; bias; tanh; dense 513 1; bias; relu; dense 2 1",
    "input float32 5; relu; bias",
    "input uint8 50; dense 20 1; bias; relu; dense 4 1",
    "input uint8 7 9 3; relu; bias; conv 6 3 3 1 same 1; tanh; bias; relu; dense 4 1",
    "input float32 7 10 3; conv 5 3 2 2 same 1; bias; tanh; conv 19 2 3 1 valid 1; relu; dense 9 1; bias",
    "input float32 9 9 1; conv 17 2 2 3 same 1; bias; relu; conv 33 3 3 2 same 1; dense 1 1",
    "input float32 2 3 1; conv 70 5 7 1 same 1; tanh; bias; relu; conv 16 1 1 1 valid 1; dense 4 1",
    "input float32 20 20 3; conv 8 3 3 7 valid 1; dense 18 1",
    "input float32 8 9 5; max_pool 3 2 2 same; bias; leaky_relu 0.2; avg_pool 2 3 1 same; silu; dense 7 1; gelu",
    "input float32 7 6 3; conv 21 3 3 1 same 1; bias; gelu; max_pool 2 2 2 valid; layer_norm; conv 9 2 2 1 valid 1; "
    "silu; avg_pool 2 1 3 same; leaky_relu 0; dense 3 1",
    "input float32 37; layer_norm; bias; dense 33 1; layer_norm; silu; dense 5 1; leaky_relu 1.5; bias",
    "input uint8 11 12 3; max_pool 5 4 3 valid; conv 6 2 2 1 same 1; layer_norm; gelu; dense 4 1",
    "input uint8 19 23 4; conv 32 8 8 4 same 1; bias; relu; conv 64 4 4 2 same 1; bias; relu; dense 64 1; relu; "
    "dense 6 1",
};

template <class T>
std::vector<T> Slot(const std::vector<T>& values, int64_t slot, int64_t size) {
  return {values.begin() + slot * size, values.begin() + (slot + 1) * size};
}

}  // namespace

TEST(EveryKindOfLayerForAnyNumberOfSlotsAndAnySharing) {
  NotForThreadSanitizer();
  const std::vector<int64_t> slots =
      FullSize() ? std::vector<int64_t>{1, 2, 3, 31, 64, 257, 1000} : std::vector<int64_t>{1, 3, 20};
  for (const std::string& text : kNetworks) {
    Both both({text}, FullSize() ? 300 : 9);
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
  Both both({kLargeModel}, FullSize() ? 256 : 2);
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

TEST(NetworksOfDifferentKindsInOneCall) {
  NotForThreadSanitizer();
  const std::vector<std::string> texts = {
      "input float32 6 6 2; conv 3 3 3 1 same 1; relu; dense 4 1; bias",
      "input float32 6 6 2; dense 11 1; tanh; dense 4 1",
      "input float32 6 6 2; conv 40 2 2 2 valid 1; bias; relu; dense 64 1; bias; relu; dense 4 1",
      "input float32 6 6 2; conv 1 6 6 6 valid 1; dense 4 1",
  };
  Both both(texts, 30);
  both.Fill();
  for (int64_t k : {1, 5, 60}) {
    for (Sharing sharing : kSharings) CheckForward(both, RowsOf(sharing, k, 30, k), k, Concat(k, " slots"));
  }
  both.Do([](Population& population) {  // rows change their networks
    population.Init({0, 5}, {2, 1}, {50, 51});
    population.Perturb({1, 2}, {0, 5}, {52, 53}, {0.1f, 0.1f});
  });
  CheckForward(both, RowsOf(Sharing::kMixed, 60, 30, 8), 9, "after rows changed");
}

TEST(WhatSharesACallChangesNothing) {
  NotForThreadSanitizer();
  const std::string text = FullSize() ? std::string(kLargeModel) : kNetworks.back();
  const int64_t k = FullSize() ? 200 : 24, size = Network::Parse(text).input_size();
  NeedGpu();
  Rows gpu(NEUROEVO_CUDA_BACKEND, {text}, k);
  std::vector<int64_t> all(k);
  std::iota(all.begin(), all.end(), 0);
  gpu.population->Init(all, std::vector<int32_t>(k, 0), std::vector<uint64_t>(k, 4));  // equal weights in every row
  const auto observations = Observations<uint8_t>(gpu.population->networks()[0], k, 8);
  std::vector<float> alone;
  for (int64_t slot = 0; slot < k; ++slot) {
    const auto out = gpu.Forward({slot}, Slot(observations, slot, size));
    alone.insert(alone.end(), out.begin(), out.end());
  }
  CheckSame(gpu.Forward(all, observations), alone, "different rows");
  for (int64_t groups : {1, 2, 3, 17}) {
    std::vector<int64_t> rows(k);
    for (int64_t slot = 0; slot < k; ++slot) rows[slot] = slot * slot % groups;
    CheckSame(gpu.Forward(rows, observations), alone, Concat(groups, " rows"));
  }
  for (int64_t part : {2, 9, 33}) {  // only the first slots
    if (part > k) continue;
    const std::vector<uint8_t> some(observations.begin(), observations.begin() + part * size);
    const auto out = gpu.Forward({all.begin(), all.begin() + part}, some);
    CheckSame(out, {alone.begin(), alone.begin() + part * gpu.A()}, Concat(part, " slots"));
  }
}

TEST(RowsOfOthersNeverShow) {
  NotForThreadSanitizer();
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::string> texts(kNetworks.begin() + 6, kNetworks.end());
  if (FullSize()) texts.push_back(kLargeModel);
  for (const std::string& text : texts) {
    Both both({text}, 9);
    both.Fill();
    const std::vector<int64_t> rows = {1, 3, 1, 4, 7, 1, 1};
    const auto before = CheckForward(both, rows, 5, text);
    for (int64_t row : {0, 2, 5, 6, 8}) both.gpu.Assign(row, 0, std::vector<float>(both.gpu.D(), kNan));
    const auto after = CheckForward(both, rows, 5, text);
    CheckSame(after, before, text);
    for (float value : after) CHECK(std::isfinite(value));
  }
}

TEST(MoreSlotsThanAGridsOtherDimensionsMayHave) {
  if (!FullSize()) SKIP("too slow at reduced size");
  Both both({"input float32 3; dense 2 1; bias"}, 1000);
  both.Fill();
  for (Sharing sharing : kSharings) CheckForward(both, RowsOf(sharing, 70000, 1000, 1), 2, "70000 slots");
  Both images({"input uint8 8 8 4; conv 3 3 3 2 same 1; bias; relu; dense 2 1; bias"}, 1000);
  images.Fill();
  for (Sharing sharing : kSharings) CheckForward(images, RowsOf(sharing, 70000, 1000, 1), 2, "70000 slots");
}

TEST(LanesForwardWhileOthersFill) {
  // Each thread is a lane, which evaluates its own rows and a common row and fills its rows between the calls.
  const std::string text = FullSize() ? std::string(kLargeModel) : kNetworks.back();
  constexpr int kLanes = 4;
  const int64_t slots = FullSize() ? 24 : 3, size = Network::Parse(text).input_size();
  Both both({text}, 1 + kLanes * slots);
  both.Fill();
  std::vector<std::thread> threads;
  std::vector<std::string> errors(kLanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    threads.emplace_back([&, lane] {
      try {
        const int64_t first = 1 + lane * slots;
        for (uint64_t step = 0; step < (FullSize() ? 12 : 3); ++step) {
          std::vector<int64_t> rows = {0};
          for (int64_t i = 0; i < slots; ++i) rows.push_back(first + i);
          rows.resize(1 + (step * 7 + lane) % (slots + 1));  // episodes end at different times
          const auto observations = Observations<uint8_t>(both.cpu.population->networks()[0], rows.size(), step);
          CHECK_EQ(observations.size(), rows.size() * size);
          CheckSame(both.gpu.Forward(rows, observations), both.cpu.Forward(rows, observations), Concat("lane ", lane));
          const int64_t filled = first + static_cast<int64_t>(step) % slots;
          both.Do([&](Population& population) { population.Perturb({filled}, {0}, {step + 100 * lane}, {0.01f}); });
        }
      } catch (const std::exception& error) {
        errors[lane] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(errors, std::vector<std::string>(kLanes));
}
