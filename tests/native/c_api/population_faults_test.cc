// Every allocation fails in turn, in any thread: the call that needed the memory reports it by its code and message,
// nothing crashes or hangs, no row holds wrong weights, and after repeating the call all numbers equal those of a run
// without failures. (Episodes are in rollout_faults_test.cc.)
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "c_api/low_rank.h"
#include "c_api/neuroevo.h"
#include "c_api/noise_sum.h"
#include "c_api/vbn.h"
#include "native/c_api/faults.h"

using namespace neuroevo;

namespace {

// Kind of population: its backend, networks and settings.
struct Kind {
  const char* backend;
  std::vector<const char*> networks;
  const char* dtype = "float32";
  int32_t rank = 0;
  bool bytes = false;       // observations are screens
  int64_t float_rows = -1;  // argument of neuroevo_population_make
};
const char kNumbers[] = "input float32 3; dense 8 1.0; bias; tanh; dense 3 1.0; bias";
const char kNormalized[] = "input float32 3; dense 8 1.0; vbn; bias; relu; dense 3 1.0; bias";
const char kRecurrent[] = "input float32 3; lstm 4 1.0; dense 3 1.0; bias";
const char kScreens[] =
    "input uint8 12 12 2; conv 4 4 4 2 same 1.0; bias; relu; max_pool 2 2 2 valid; dense 5 1.0; bias; relu; dense 4 "
    "1.0; "
    "bias";
const char kScreensInt8[] =
    "input uint8 12 12 2; conv 4 4 4 2 same 1.0; bias; relu; dense 5 1.0; bias; relu; dense 3 1.0; bias";

// Run every operation of a population and return all resulting numbers.
std::vector<float> UsePopulation(const Kind& kind) {
  constexpr int64_t kRows = 7, kSlots = 3, kReference = 6;
  NewThreads();
  PopulationHandle rows;
  const int64_t n = static_cast<int64_t>(kind.networks.size());
  Do([&] {
    if (kind.rank == 0) {
      return neuroevo_population_make(kind.backend, kind.networks.data(), n, kRows, kind.dtype, kind.float_rows,
                                      rows.place());
    }
    return neuroevo_population_make_low_rank(kind.backend, kind.networks.data(), n, kRows, kind.float_rows, kind.rank,
                                             rows.place());
  });
  int64_t dimension = 0;
  Do([&] { return neuroevo_population_dimension(rows, n - 1, &dimension); });
  int recurrent = 0;
  Do([&] { return neuroevo_population_recurrent(rows, &recurrent); });
  std::vector<float> theta(dimension), found;
  // A fill that fails leaves no row that counts as filled.
  const auto fill = [&](const Int64s& filled, auto call) {
    if (Succeeds(call)) return;
    for (int64_t row : filled) {
      CHECK_EQ(neuroevo_population_read(rows, &row, 1, theta.data(), dimension), NEUROEVO_INVALID_ARGUMENT);
    }
    CHECK(Succeeds(call));
  };
  const Int64s initialized = {0, 1}, assigned = {2}, destinations = {3, 4, 3}, sources = {0, 2, 3};
  const Int64s spreads = {-1, 1, -1};
  const std::vector<int32_t> networks = {0, static_cast<int32_t>(n - 1)};
  const std::vector<uint64_t> seeds = {11, 12, 13};
  const std::vector<float> scales = {0.5f, 0.25f, 0.125f};
  fill(initialized,
       [&] { return neuroevo_population_init(rows, initialized.data(), 2, networks.data(), seeds.data()); });
  for (int64_t i = 0; i < dimension; ++i) theta[i] = static_cast<float>(i % 7 - 3) / 8;
  fill(assigned,
       [&] { return neuroevo_population_assign(rows, assigned.data(), 1, &networks[1], theta.data(), dimension); });
  fill({3, 4}, [&] {
    return neuroevo_population_perturb(rows, destinations.data(), sources.data(), 3, seeds.data(), scales.data(),
                                       spreads.data());
  });
  Int64s used = {0, 3, 4};
  if (kind.rank > 0) {
    const Int64s members = {5, 6}, centers = {0, 2};
    fill(members, [&] {
      return neuroevo_population_perturb(rows, members.data(), centers.data(), 2, seeds.data(), scales.data(), nullptr);
    });
    used = {5, 6, 2};
  }
  const int64_t values = kind.bytes ? 12 * 12 * 2 : 3, size = values * (kind.bytes ? 1 : sizeof(float));
  std::vector<char> observations(size * std::max(kSlots, kReference));
  const auto look = [&](int seed) {
    for (int64_t i = 0; i < static_cast<int64_t>(observations.size()); ++i) {
      if (kind.bytes) observations[i] = static_cast<char>(i * (i % 5 == 0 ? seed : 3));
    }
    for (int64_t i = 0; !kind.bytes && i < 3 * std::max(kSlots, kReference); ++i) {
      const float value = static_cast<float>((i * 5 + seed) % 11) / 4;
      std::memcpy(observations.data() + i * sizeof(float), &value, sizeof(float));
    }
  };
  if (std::string(kind.networks.back()).find("vbn") != std::string::npos) {
    look(1);
    Do([&] { return neuroevo_population_set_reference(rows, observations.data(), kReference); });
    Do([&] { return neuroevo_population_prepare(rows, used.data(), kSlots); });
    std::vector<float> statistics(100);
    int64_t count = 0;
    Do([&] { return neuroevo_population_statistics(rows, used[1], statistics.data(), 100, &count); });
    found.insert(found.end(), statistics.begin(), statistics.begin() + count);
  }
  // Slots store their last observations, and recurrent networks a state; after a failure only a restart is valid.
  const Int64s states = {4, 0, 2};
  for (bool whole = false; !whole;) {
    whole = true;
    const size_t before = found.size();
    Do([&] { return neuroevo_population_clear_states(rows, states.data(), kSlots); });
    for (int step = 0; step < 4 && whole; ++step) {
      look(step + 2);
      std::vector<float> outputs(3 * kSlots);
      const auto forward = [&] {
        return neuroevo_population_forward(rows, used.data(), kSlots, observations.data(), outputs.data(),
                                           states.data());
      };
      if (!Succeeds(forward)) {
        whole = !recurrent;
        if (whole) CHECK(Succeeds(forward));
      }
      found.insert(found.end(), outputs.begin(), outputs.end());
    }
    if (!whole) found.resize(before);
  }
  for (int64_t row : used) {
    if (kind.rank == 0 && kind.float_rows >= 0 && row >= kind.float_rows) continue;  // the row has no floats
    Do([&] { return neuroevo_population_read(rows, &row, 1, theta.data(), dimension); });
    found.insert(found.end(), theta.begin(), theta.end());
  }
  return found;
}

std::vector<double> UseSums() {
  NewThreads();
  const std::vector<uint64_t> seeds = {1, 2, 3};
  const std::vector<float> weights = {0.5f, 0.0f, -1.0f};
  std::vector<float> noise(200);
  Do([&] {
    return neuroevo_noise_sum(seeds.data(), weights.data(), 3, 5, 100, noise.data(), weights.data(), &noise[100]);
  });
  std::vector<double> found(noise.begin(), noise.end());
  int64_t dimension = 8 * 3 + 8 + 3 * 8 + 3;
  std::vector<double> sums(dimension);
  Do([&] {
    std::fill(sums.begin(), sums.end(), 0.0);
    return neuroevo_low_rank_sum(kNumbers, 2, seeds.data(), weights.data(), 3, dimension, sums.data());
  });
  found.insert(found.end(), sums.begin(), sums.end());
  return found;
}

void FailEachOf(const Kind& kind) {
  allocations::FailEach([&] { return UsePopulation(kind); });
}

}  // namespace

TEST(Numbers) {
  for (const char* backend : {"cpu", "reference"}) FailEachOf({backend, {kNumbers, kNumbers}});
}
TEST(Recurrent) {
  for (const char* backend : {"cpu", "reference"}) FailEachOf({backend, {kRecurrent}});
}
TEST(VirtualBatchNormalization) {
  for (const char* backend : {"cpu", "reference"}) FailEachOf({backend, {kNumbers, kNormalized}});
}
TEST(Screens) {
  for (const char* backend : {"cpu", "reference"}) FailEachOf({backend, {kScreens}, "float32", 0, true});
}
TEST(Integers) {
  for (const char* backend : {"cpu", "reference"}) FailEachOf({backend, {kScreensInt8}, "int8", 0, true});
}
TEST(IntegersWithoutFloats) { FailEachOf({"cpu", {kScreensInt8}, "int8", 0, true, 3}); }
TEST(LowRank) {
  for (const char* backend : {"cpu", "reference"}) FailEachOf({backend, {kNumbers}, "float32", 2, false, 5});
}
TEST(SumsOfNoise) { allocations::FailEach(UseSums); }
