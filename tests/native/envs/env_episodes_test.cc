// Per-episode data of an env pool: normalizer, sums of the observations, failure. On a toy whose observations are
// computed from its seed.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "envs/env_pool.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

constexpr int64_t kSize = 3;

// Value i of the observation after this number of steps of an episode.
double Seen(uint64_t seed, int64_t steps, int64_t i) {
  return std::sin(static_cast<double>(seed * 7 + steps * 3 + i)) * static_cast<double>(10 * i + 1) + 1.0 / 3;
}

// Ends after seed % 10 + 1 steps; from seed 1000 on with a failure.
template <class T>
class Swing : public Env {
 public:
  void Reset(uint64_t seed, int64_t) override {
    seed_ = seed;
    steps_ = 0;
  }
  StepResult Step(const void*) override {
    ++steps_;
    return {1, steps_ > static_cast<int64_t>(seed_ % 10)};
  }
  void Observe(void* out) const override {
    for (int64_t i = 0; i < kSize; ++i) static_cast<T*>(out)[i] = static_cast<T>(Seen(seed_, steps_, i));
  }
  std::string Failure() const override { return seed_ < 1000 ? "" : "swing " + std::to_string(seed_) + " broke"; }

 private:
  uint64_t seed_ = 0;
  int64_t steps_ = 0;
};

class SwingFactory : public EnvFactory {
 public:
  explicit SwingFactory(const EnvOptions& given) {
    OptionReader options("swing", given);
    const std::string dtype = options.OneOf("dtype", {"float64", "float32", "uint8"});
    options.Finish();
    spec_.observation_dtype = dtype == "float64"   ? DType::kFloat64
                              : dtype == "float32" ? DType::kFloat32
                                                   : DType::kUint8;
    spec_.observation_shape = {kSize};
    spec_.action_dtype = DType::kFloat32;
    spec_.num_actions = 1;
    spec_.action_low = {-1};
    spec_.action_high = {1};
  }
  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override {
    if (spec_.observation_dtype == DType::kFloat64) return std::make_unique<Swing<double>>();
    if (spec_.observation_dtype == DType::kFloat32) return std::make_unique<Swing<float>>();
    return std::make_unique<Swing<uint8_t>>();
  }

 private:
  EnvSpec spec_;
};

const bool registered =
    RegisterEnvFamily("swing", [](const EnvOptions& options) { return std::make_unique<SwingFactory>(options); });

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
using Floats = std::vector<float>;

const Doubles kMean = {0.25, -1, 3}, kStd = {0.125, 0.7, 11};

struct Swings {
  EnvPool pool;

  explicit Swings(int64_t slots, const std::string& dtype = "float64", int threads = 2)
      : pool("swing", {{"dtype", dtype}}, slots, std::make_shared<ThreadPool>(threads)) {}
  void Reset(const Ints& slots, const std::vector<uint64_t>& seeds, const Ints& normalizers = {}) {
    pool.Reset(slots, seeds, Ints(slots.size(), 0), normalizers);
  }
  Floats Observe(const Ints& slots) {
    Floats out(kSize * slots.size(), -99);
    pool.ObserveNormalized(slots, out.data());
    return out;
  }
  // The number of slots that are done.
  int64_t Step(const Ints& slots, float action = 0) {
    const Floats actions(slots.size(), action);
    Doubles rewards(slots.size());
    const auto dones = std::make_unique<bool[]>(slots.size());
    pool.Step(slots, actions.data(), rewards.data(), dones.get());
    return std::count(dones.get(), dones.get() + slots.size(), true);
  }
  // Failure and sums of the episode that has ended in the slot.
  std::pair<std::string, Doubles> Take(int64_t slot) {
    const std::vector<EpisodeEnd> ends = pool.TakeEnds({slot});
    CHECK_EQ(ends.size(), 1);
    return {ends[0].failure, ends[0].observation_sums};
  }
};

float Normalized(double value, int64_t i) {
  return static_cast<float>(std::fmin(std::fmax((value - kMean[i]) / kStd[i], -5), 5));
}

// Of the observations after 0 ... steps - 1 steps, in their dtype.
template <class T>
Doubles SumsOf(uint64_t seed, int64_t steps) {
  Doubles sums(1 + 2 * kSize);
  sums[0] = static_cast<double>(steps);
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < kSize; ++i) {
      const volatile T seen = static_cast<T>(Seen(seed, step, i));  // GCC 12 may leave the rounding out else
      const double value = seen;
      sums[1 + i] += value;
      sums[1 + kSize + i] += value * value;
    }
  }
  return sums;
}

}  // namespace

TEST(ObservationsAndTheirSums) {
  for (int threads : {1, 3}) {
    for (const std::string dtype : {"float64", "float32"}) {
      constexpr int64_t kSlots = 20;  // more than one task
      Swings swings(kSlots, dtype, threads);
      swings.pool.SetNormalizer(4, kMean, kStd);
      Ints slots(kSlots), normalizers(kSlots);
      std::vector<uint64_t> seeds(kSlots);
      for (int64_t k = 0; k < kSlots; ++k) {
        slots[k] = k * 7 % kSlots;
        seeds[k] = 100 + k;
        normalizers[k] = k % 3 == 0 ? -1 : 4;
      }
      swings.Reset(slots, seeds, normalizers);
      bool clipped = false;
      for (int64_t step = 0; step < 10; ++step) {
        Ints live;
        Floats expected;
        for (int64_t k = 0; k < kSlots; ++k) {
          if (k % 10 < step) continue;
          live.push_back(slots[k]);
          for (int64_t i = 0; i < kSize; ++i) {
            double value = Seen(seeds[k], step, i);
            if (dtype == "float32") value = static_cast<float>(value);
            expected.push_back(normalizers[k] == 4 ? Normalized(value, i) : static_cast<float>(value));
            clipped = clipped || (normalizers[k] == 4 && std::fabs(expected.back()) == 5);
          }
        }
        CHECK_EQ(swings.Observe(live), expected);
        CHECK_EQ(swings.Step(live), 2);  // those of k = step and 10 + step
        const auto ends = swings.pool.TakeEnds({slots[10 + step], slots[step]});
        for (int64_t k : {10 + step, step}) {
          const EpisodeEnd& end = ends[k == step ? 1 : 0];
          CHECK_EQ(end.failure, "");
          CHECK_EQ(end.observation_sums, normalizers[k] == -1 ? Doubles()
                                         : dtype == "float32" ? SumsOf<float>(100 + k, step + 1)
                                                              : SumsOf<double>(100 + k, step + 1));
        }
      }
      CHECK(clipped);
    }
  }
}

TEST(TheNextEpisodeStartsAfresh) {
  Swings swings(1);
  swings.pool.SetNormalizer(0, kMean, kStd);
  swings.Reset({0}, {5}, {0});
  swings.Observe({0});
  swings.Step({0});
  swings.Observe({0});
  swings.Reset({0}, {10}, {0});  // before its end, so there is no result of it
  swings.Observe({0});
  CHECK_THROWS(swings.Take(0), "slot 0 has no finished episode, or its result was already taken");
  CHECK_EQ(swings.Step({0}), 1);
  swings.Observe({0});  // at the end: not an input of the network
  CHECK_EQ(swings.Take(0).second, SumsOf<double>(10, 1));
  swings.Reset({0}, {20}, {0});
  swings.Step({0});
  CHECK_EQ(swings.Take(0).second, Doubles(7));  // no observation was read
  swings.Reset({0}, {30});
  swings.Observe({0});
  swings.Step({0});
  CHECK_EQ(swings.Take(0).second, Doubles());  // it had no normalizer
  swings.Reset({0}, {1000}, {0});
  swings.Step({0});
  swings.Reset({0}, {9}, {0});  // the next reset discards untaken ends
  CHECK_THROWS(swings.Take(0), "slot 0 has no finished episode");
}

TEST(EachEndIsTakenOnce) {
  Swings swings(4);
  CHECK_THROWS(swings.Take(3), "slot 3 has no finished episode, or its result was already taken");
  swings.Reset({0, 1, 2, 3}, {0, 1000, 1001, 1010});
  CHECK_EQ(swings.Step({0, 1, 2, 3}), 3);
  CHECK_THROWS(swings.pool.TakeEnds({1, 2}), "slot 2 has no finished episode");  // still running
  CHECK_THROWS(swings.pool.TakeEnds({1, 4}), "slot 4 is out of range [0, 4)");
  CHECK_THROWS(swings.pool.TakeEnds({1, 1}), "slot 1 occurs more than once in one call");
  const auto ends = swings.pool.TakeEnds({3, 0, 1});  // those errors took none
  CHECK_EQ(ends[0].failure, "swing 1010 broke");
  CHECK_EQ(ends[1].failure, "");
  CHECK_EQ(ends[2].failure, "swing 1000 broke");
  CHECK_EQ(ends[2].observation_sums, Doubles());
  CHECK_THROWS(swings.Take(1), "slot 1 has no finished episode, or its result was already taken");
  CHECK_EQ(swings.pool.Failure(1), "swing 1000 broke");  // the slot still returns it
  CHECK_EQ(swings.Step({2}, std::numeric_limits<float>::quiet_NaN()), 1);
  swings.pool.SetNormalizer(0, kMean, kStd);
  swings.Reset({0}, {1002}, {0});
  swings.Observe({0});
  swings.Step({0}, std::numeric_limits<float>::infinity());
  CHECK_EQ(swings.Take(2).first, "action[0] is nan, expected a finite number");  // before what the environment says
  const auto [failure, sums] = swings.Take(0);
  CHECK_EQ(failure, "action[0] is inf, expected a finite number");
  CHECK_EQ(sums, SumsOf<double>(1002, 1));
  CHECK_EQ(swings.pool.TakeEnds({}).size(), 0);
}

TEST(ADroppedNormalizerServesItsEpisodes) {
  Swings swings(2);
  swings.pool.SetNormalizer(3, kMean, kStd);
  swings.Reset({0}, {5}, {3});
  const Floats before = swings.Observe({0});
  swings.pool.DropNormalizers({3});
  CHECK_EQ(swings.Observe({0}), before);
  CHECK_THROWS(swings.Reset({1}, {5}, {3}), "normalizer 3 is not set");
  swings.pool.SetNormalizer(3, kStd, kStd);  // the number is free again
  swings.Reset({1}, {5}, {3});
  CHECK_EQ(swings.Observe({0}), before);
  CHECK(swings.Observe({1}) != before);
}

TEST(NormalizerErrors) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  Swings swings(2);
  EnvPool& pool = swings.pool;
  pool.SetNormalizer(1, kMean, kStd);
  pool.SetNormalizer(1, kMean, kStd);  // the same again
  CHECK_THROWS(pool.SetNormalizer(1, kMean, {1, 1, 1}), "normalizer 1 is already set to different values");
  CHECK_THROWS(pool.SetNormalizer(1, kStd, kStd), "normalizer 1 is already set to different values");
  CHECK_THROWS(pool.SetNormalizer(-1, kMean, kStd), "number of a normalizer is -1, expected 0 or more");
  CHECK_THROWS(pool.SetNormalizer(2, {1, 2}, kStd), "mean has 2 values, expected one per value of an observation: 3");
  CHECK_THROWS(pool.SetNormalizer(2, kMean, {1, 2, 3, 4}),
               "std has 4 values, expected one per value of an observation: 3");
  CHECK_THROWS(pool.SetNormalizer(2, {1, kNan, 1}, kStd), "mean[1] is nan, expected a finite number");
  CHECK_THROWS(pool.SetNormalizer(2, {1, 1, -kInf}, kStd), "mean[2] is -inf, expected a finite number");
  for (const auto& [bad, text] : {std::pair{0.0, "0"}, {-1.0, "-1"}, {kInf, "inf"}, {kNan, "nan"}, {-0.0, "-0"}}) {
    CHECK_THROWS(pool.SetNormalizer(2, kMean, {1, 1, bad}),
                 std::string("std[2] is ") + text + ", expected a finite number above 0");
  }
  CHECK_THROWS(pool.DropNormalizers({1, 2}), "normalizer 2 is not set");
  CHECK_THROWS(pool.DropNormalizers({-1}), "normalizer -1 is not set");
  swings.Reset({0}, {1}, {1});  // it was not dropped
  CHECK_THROWS(swings.Observe({0, 1}), "slot 1 has no observation: it was never reset");
  CHECK_THROWS(swings.Observe({2}), "slot 2 is out of range [0, 2)");
  pool.DropNormalizers({1, 1});
  Swings pictures(1, "uint8");
  pictures.Reset({0}, {1});
  CHECK_THROWS(pictures.Observe({0}), "the environment's observations are uint8, expected float32 or float64");
  CHECK_THROWS(pictures.pool.SetNormalizer(0, kMean, kStd), "the environment's observations are uint8");
}

TEST(NormalizersComeAndGoBesideTheLanes) {
  constexpr int kThreads = 3, kRounds = 100;
  Swings swings(kThreads, "float64", 2);
  swings.pool.SetNormalizer(0, kMean, kStd);
  std::atomic<int> running{kThreads};
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        for (int round = 0; round < kRounds; ++round) {
          const auto seed = static_cast<uint64_t>(10 * round + t);
          swings.Reset({t}, {seed}, {0});
          for (bool over = false; !over; over = swings.Step({t}) == 1) swings.Observe({t});
          CHECK_EQ(swings.Take(t).second, SumsOf<double>(seed, static_cast<int64_t>(seed % 10) + 1));
        }
      } catch (const std::exception& e) {
        failures[t] = e.what();
      }
      --running;
    });
  }
  for (int64_t number = 1; running > 0 || number < 2; ++number) {
    swings.pool.SetNormalizer(number, kStd, kStd);
    swings.pool.DropNormalizers({number});
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) CHECK_EQ(failure, "");
}
