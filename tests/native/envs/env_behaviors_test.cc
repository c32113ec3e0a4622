// The behaviors that an env pool records: at the end and as trajectories, on a toy whose behavior is its seed, its
// steps and the sum of its actions.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
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

constexpr uint64_t kBreaks = 1000, kBehaviorThrows = 2000;  // from these seeds on

// Ends after seed % 10 + 1 steps.
class Trail : public Env {
 public:
  void Reset(uint64_t seed, int64_t) override {
    seed_ = seed;
    steps_ = 0;
    sum_ = 0;
  }
  StepResult Step(const void* action) override {
    ++steps_;
    sum_ += *static_cast<const float*>(action);
    return {1, steps_ > static_cast<int64_t>(seed_ % 10)};
  }
  void Observe(void* out) const override { *static_cast<float*>(out) = 0; }
  void Behavior(void* out) const override {
    if (seed_ >= kBehaviorThrows) ThrowInvalid("the trail is lost");
    const double values[] = {static_cast<double>(seed_), static_cast<double>(steps_), sum_};
    std::memcpy(out, values, sizeof(values));
  }
  std::string Failure() const override { return seed_ >= kBreaks && seed_ < kBehaviorThrows ? "broken" : ""; }

 private:
  uint64_t seed_ = 0;
  int64_t steps_ = 0;
  double sum_ = 0;
};

class TrailFactory : public EnvFactory {
 public:
  explicit TrailFactory(const EnvOptions& given) {
    OptionReader options("trail", given);
    if (options.Bool("show", true)) spec_.behavior_shape = {3};
    options.Finish();
    spec_.behavior_dtype = DType::kFloat64;
    spec_.observation_shape = {1};
    spec_.action_dtype = DType::kFloat32;
    spec_.num_actions = 1;
    spec_.action_low = {-9};
    spec_.action_high = {9};
  }
  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<Trail>(); }

 private:
  EnvSpec spec_;
};

const bool registered =
    RegisterEnvFamily("trail", [](const EnvOptions& options) { return std::make_unique<TrailFactory>(options); });

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

struct Trails {
  EnvPool pool;

  explicit Trails(int64_t slots, int threads = 2, const EnvOptions& options = {})
      : pool("trail", options, slots, std::make_shared<ThreadPool>(threads)) {}
  void Reset(const Ints& slots, const std::vector<uint64_t>& seeds) { pool.Reset(slots, seeds, Ints(slots.size(), 0)); }
  // Whether the episode is over.
  bool Step(int64_t slot, float action) {
    double reward;
    bool done;
    pool.Step({slot}, &action, &reward, &done);
    return done;
  }
  // Plays to the end with actions 1, 2, 3, ...
  void Play(int64_t slot, uint64_t seed) {
    Reset({slot}, {seed});
    for (float action = 1; !Step(slot, action); ++action) {
    }
  }
  // Failure and behavior of the episode that has ended in the slot.
  std::pair<std::string, Doubles> Take(int64_t slot) {
    const EpisodeEnd end = pool.TakeEnds({slot}).at(0);
    Doubles behavior(end.behavior.size() / sizeof(double));
    std::copy(end.behavior.begin(), end.behavior.end(), reinterpret_cast<uint8_t*>(behavior.data()));
    return {end.failure, behavior};
  }
};

// Of an episode that Play() played, after the steps of the samples, none of which is after its end.
Doubles Expected(uint64_t seed, const Ints& steps) {
  Doubles all;
  for (int64_t step : steps) {
    all.insert(all.end(),
               {static_cast<double>(seed), static_cast<double>(step), static_cast<double>(step * (step + 1) / 2)});
  }
  return all;
}

}  // namespace

TEST(TheBehaviorAtTheEnd) {
  Trails trails(3);
  trails.pool.RecordBehaviors(0, 7);  // samples are of trajectories
  trails.Play(2, 4);
  CHECK_EQ(trails.Take(2).second, Expected(4, {5}));
  trails.Play(0, 0);
  trails.Play(2, 9);
  CHECK_EQ(trails.Take(0).second, Expected(0, {1}));
  CHECK((trails.Take(2) == std::pair{std::string(), Expected(9, {10})}));
}

TEST(Trajectories) {
  const std::map<std::pair<int64_t, int64_t>, std::map<uint64_t, Ints>> expected = {
      // every, samples -> seed (of seed + 1 steps) -> steps of the samples
      {{1, 3}, {{0, {1, 1, 1}}, {1, {1, 2, 2}}, {2, {1, 2, 3}}, {3, {1, 2, 3}}, {9, {1, 2, 3}}}},
      {{2, 3}, {{0, {1, 1, 1}}, {1, {2, 2, 2}}, {2, {2, 3, 3}}, {3, {2, 4, 4}}, {5, {2, 4, 6}}, {9, {2, 4, 6}}}},
      {{4, 2}, {{2, {3, 3}}, {3, {4, 4}}, {4, {4, 5}}, {6, {4, 7}}, {7, {4, 8}}, {8, {4, 8}}}},
      {{3, 1}, {{1, {2}}, {2, {3}}, {8, {3}}}},
      {{int64_t{1} << 60, 2}, {{7, {8, 8}}}},
  };
  for (const auto& [plan, episodes] : expected) {
    Trails trails(1);
    trails.pool.RecordBehaviors(plan.first, plan.second);
    for (int round = 0; round < 2; ++round) {  // one episode after another in the same slot
      for (const auto& [seed, steps] : episodes) {
        trails.Play(0, seed);
        CHECK_EQ(trails.Take(0).second, Expected(seed, steps));
      }
    }
  }
}

TEST(AnEpisodeThatIsResetBeforeItsEnd) {
  Trails trails(1);
  trails.pool.RecordBehaviors(2, 3);
  trails.Reset({0}, {9});
  for (int step = 0; step < 5; ++step) trails.Step(0, 100);
  trails.Play(0, 2);  // nothing of the 100s, and sampling restarts
  CHECK_EQ(trails.Take(0).second, Expected(2, {2, 3, 3}));
  trails.Reset({0}, {9});
  trails.Step(0, 100);
  trails.Step(0, 100);
  trails.Play(0, 5);  // whose results no call takes
  trails.Play(0, 6);
  CHECK_EQ(trails.Take(0).second, Expected(6, {2, 4, 6}));
}

TEST(FailedEpisodesHaveZeros) {
  for (int64_t every : {0, 1, 2}) {
    Trails trails(2);
    trails.pool.RecordBehaviors(every, 2);
    const size_t size = every == 0 ? 3 : 6;
    trails.Play(0, kBreaks + 3);
    CHECK((trails.Take(0) == std::pair{std::string("broken"), Doubles(size)}));
    trails.Reset({1}, {8});
    trails.Step(1, 5);
    trails.Step(1, 6);
    CHECK(trails.Step(1, std::numeric_limits<float>::quiet_NaN()));
    CHECK((trails.Take(1) == std::pair{std::string("action[0] is nan, expected a finite number"), Doubles(size)}));
    trails.Play(0, 4);  // nothing of the failure is left
    CHECK_EQ(trails.Take(0).second, Expected(4, every == 0 ? Ints{5} : every == 1 ? Ints{1, 2} : Ints{2, 4}));
  }
}

TEST(BesideObservationSums) {
  Trails trails(2);
  trails.pool.SetNormalizer(0, {0}, {1});
  trails.pool.RecordBehaviors(0, 1);
  trails.pool.Reset({0, 1}, {0, 0}, {0, 0}, {0, -1});
  float shown[2];
  trails.pool.ObserveNormalized({0, 1}, shown);
  trails.Step(0, 1);
  trails.Step(1, 1);
  const auto ends = trails.pool.TakeEnds({0, 1});
  CHECK_EQ(ends[0].observation_sums, (Doubles{1, 0, 0}));
  CHECK_EQ(ends[1].observation_sums, Doubles());
  for (const EpisodeEnd& end : ends) CHECK_EQ(end.behavior.size(), 24);
}

TEST(NothingIsRecordedUnasked) {
  Trails trails(1);
  trails.Play(0, 4);
  CHECK((trails.Take(0) == std::pair{std::string(), Doubles()}));
  trails.Play(0, kBreaks);
  CHECK((trails.Take(0) == std::pair{std::string("broken"), Doubles()}));
}

TEST(Errors) {
  Trails blind(1, 1, {{"show", "false"}});
  CHECK_THROWS(blind.pool.RecordBehaviors(0, 1), "behavior is not supported by this environment");
  Trails trails(3);
  CHECK_THROWS(trails.pool.RecordBehaviors(-1, 1), "every is -1, expected 0 (at the end) or a number of steps");
  CHECK_THROWS(trails.pool.RecordBehaviors(1, 0), "samples is 0, expected 1 to 699050 of 24 bytes each");
  CHECK_THROWS(trails.pool.RecordBehaviors(0, -2), "samples is -2, expected 1 to");
  CHECK_THROWS(trails.pool.RecordBehaviors(5, 699051), "samples is 699051, expected 1 to 699050");
  CHECK_THROWS(trails.pool.RecordBehaviors(1, std::numeric_limits<int64_t>::max()), "expected 1 to 699050");
  trails.pool.RecordBehaviors(5, 699050);
  trails.pool.RecordBehaviors(0, 1);  // the last one counts
  trails.Play(1, 3);
  CHECK_EQ(trails.Take(1).second, Expected(3, {4}));
  CHECK_THROWS(trails.pool.RecordBehaviors(0, 1), "slot 1 was already reset");
}

TEST(AnExceptionOfTheEnvironment) {
  for (int64_t every : {0, 1}) {
    Trails trails(1);
    trails.pool.RecordBehaviors(every, 2);
    trails.Reset({0}, {kBehaviorThrows + 1 - every});
    if (every == 0) trails.Step(0, 1);
    CHECK_THROWS(trails.Step(0, 1), "the trail is lost");
    CHECK_THROWS(trails.Step(0, 1), "slot 0 is not live");
    CHECK_THROWS(trails.Take(0), "slot 0 has no finished episode");
    trails.Play(0, 2);
    CHECK_EQ(trails.Take(0).second, Expected(2, every == 0 ? Ints{3} : Ints{1, 2}));
  }
}

TEST(ThreadsOfTheirOwnSlots) {
  constexpr int kThreads = 3, kRounds = 200;
  Trails trails(kThreads);
  trails.pool.RecordBehaviors(3, 2);
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        for (int round = 0; round < kRounds; ++round) {
          const auto seed = static_cast<uint64_t>(10 * round + t) % kBreaks;
          const int64_t last = static_cast<int64_t>(seed % 10) + 1;
          trails.Play(t, seed);
          CHECK_EQ(trails.Take(t).second, Expected(seed, {std::min<int64_t>(3, last), std::min<int64_t>(6, last)}));
        }
      } catch (const std::exception& e) {
        failures[t] = e.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) CHECK_EQ(failure, "");
}
