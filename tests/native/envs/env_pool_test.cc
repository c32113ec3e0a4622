// The env pool and the registry of families, on a toy family: values. (Errors are in env_pool_errors_test.cc, the
// reading of options is in env_options_test.cc, normalizers and ended episodes are in env_episodes_test.cc.)
#include "envs/env_pool.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "native/check.h"
#include "native/envs/toys.h"

using namespace neuroevo;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace

TEST(ValuesAreThoseOfTheEnvironments) {
  for (const auto& [threads, per_task] : {std::pair{1, "1"}, {3, "1"}, {3, "3"}, {3, "64"}}) {
    constexpr int64_t kSlots = 20;  // more than one task, but for the last
    Toys toys(kSlots, {{"length", "7"}, {"steps_per_task", per_task}, {"observations_per_task", per_task}}, threads);
    CHECK_EQ(toys.pool.slots(), kSlots);
    std::vector<int64_t> slots(kSlots);
    std::vector<uint64_t> seeds(kSlots);
    for (int64_t k = 0; k < kSlots; ++k) {
      slots[k] = k * 7 % kSlots;  // any order
      seeds[k] = 100 + slots[k];
    }
    toys.Reset(slots, seeds);
    std::vector<double> sums(kSlots, 0);
    for (int step = 1; step <= 7; ++step) {
      std::vector<int32_t> actions(kSlots);
      Rewards rewards;
      for (int64_t k = 0; k < kSlots; ++k) {
        actions[k] = static_cast<int32_t>((k + step) % 3);
        sums[k] += actions[k];
        rewards.push_back(sums[k] + static_cast<double>(seeds[k]) / 8);
      }
      rewards.push_back(step == 7 ? kSlots : 0);
      CHECK_EQ(toys.Step(slots, actions), rewards);
      Values expected;
      for (int64_t k = 0; k < kSlots; ++k) {
        expected.insert(expected.end(),
                        {static_cast<float>(seeds[k]), static_cast<float>(step), static_cast<float>(sums[k])});
      }
      CHECK_EQ(toys.Observe(slots), expected);
      CHECK_EQ(toys.Observe({slots[5]}), Values(expected.begin() + 15, expected.begin() + 18));
    }
  }
}

TEST(OtherSlotsStandStill) {
  Toys toys(4);
  toys.Reset({0, 1, 2, 3}, {8, 16, 24, 32});
  CHECK_EQ(toys.Step({2, 0}, {1, 2}), (Rewards{4, 3, 0}));
  CHECK_EQ(toys.Step({2}, {1}), (Rewards{5, 0}));
  toys.Reset({1}, {40});
  CHECK_EQ(toys.Observe({0, 1, 2, 3}), (Values{8, 1, 2, 40, 0, 0, 24, 2, 2, 32, 0, 0}));
}

TEST(MaxFramesCutOff) {
  Toys toys(2);
  toys.Reset({0}, {0}, 4);
  toys.Reset({1}, {0}, 6);
  CHECK_EQ(toys.Step({0, 1}, {1, 1}), (Rewards{1, 1, 0}));
  CHECK_EQ(toys.Step({0, 1}, {1, 1}), (Rewards{2, 2, 1}));
  CHECK_EQ(toys.Step({1}, {1}), (Rewards{3, 1}));
}

TEST(VectorsOfActions) {
  Toys toys(3, {{"actions", "vector"}, {"num_actions", "2"}});
  toys.Reset({0, 1, 2}, {0, 0, 0});
  const std::vector<float> actions = {0.5f, 1, -2, 0.25f};
  CHECK_EQ(toys.StepBytes({2, 0}, actions.data()), (Rewards{1.5, -1.75, 0}));
}

TEST(NumbersThatAreNotFiniteEndTheirEpisodeAlone) {
  for (const auto& [bad, text] : {std::pair{kNan, "nan"}, {-kNan, "nan"}, {kInf, "inf"}, {-kInf, "-inf"}}) {
    Toys toys(3, {{"actions", "vector"}, {"num_actions", "2"}});
    toys.Reset({0, 1, 2}, {0, 8, 0});
    const std::vector<float> actions = {1, 2, 4, bad, 8, 16};
    CHECK_EQ(toys.StepBytes({0, 1, 2}, actions.data()), (Rewards{3, 0, 24, 1}));
    CHECK_EQ(toys.Observe({0, 1, 2}), (Values{0, 1, 3, 8, 0, 0, 0, 1, 24}));  // slot 1 was not stepped
    CHECK_EQ(toys.pool.Failure(0) + toys.pool.Failure(2), "");
    CHECK_EQ(toys.pool.Failure(1), std::string("action[1] is ") + text + ", expected a finite number");
    CHECK_THROWS(toys.StepBytes({0, 1}, actions.data()), "slot 1 is not live");
    toys.Reset({1}, {8});
    CHECK_EQ(toys.pool.Failure(1), "");
    CHECK_EQ(toys.StepBytes({1}, actions.data()), (Rewards{4, 0}));
  }
}

TEST(NoSlots) {
  Toys toys(1);
  toys.Reset({}, {});
  CHECK_EQ(toys.Step({}, {}), (Rewards{0}));
  CHECK_EQ(toys.Observe({}), Values{});
  toys.pool.Step({}, nullptr, nullptr, nullptr);
}

TEST(BehaviorsAndScreens) {
  constexpr int64_t kSlots = 20;  // more than one task
  Toys toys(kSlots, {{"show", "true"}});
  std::vector<int64_t> slots(kSlots);
  std::vector<uint64_t> seeds(kSlots);
  for (int64_t k = 0; k < kSlots; ++k) {
    slots[k] = k * 7 % kSlots;
    seeds[k] = 100 + slots[k];
  }
  toys.Reset(slots, seeds);
  toys.Step({3, 5}, {1, 1});
  toys.Step({5}, {1});
  std::vector<double> behaviors;
  std::vector<uint8_t> screens;
  for (int64_t slot : slots) {
    const uint8_t steps = slot == 5 ? 2 : slot == 3 ? 1 : 0, seed = static_cast<uint8_t>(100 + slot);
    behaviors.insert(behaviors.end(), {double(steps), double(seed)});
    screens.insert(screens.end(), {seed, steps, 255, seed, steps, 255});
  }
  CHECK_EQ(toys.Behavior(slots), behaviors);
  CHECK_EQ(toys.Render(slots), screens);
  CHECK_EQ(toys.Behavior({}).size(), 0);
  CHECK_EQ(toys.Render({}).size(), 0);
  CHECK_THROWS(toys.Behavior({1, 20}), "slot 20 is out of range [0, 20)");
  CHECK_THROWS(toys.Render({-1}), "slot -1 is out of range [0, 20)");
  CHECK_THROWS(toys.Behavior({1, 1}), "slot 1 occurs more than once");
  CHECK_THROWS(toys.Render({1, 1}), "slot 1 occurs more than once");
  CHECK_THROWS(toys.Reset({4}, {kResetThrows}), "the toy cannot be reset");
  CHECK_THROWS(toys.Behavior({1, 4}), "slot 4 has no behavior: it was never reset");
  CHECK_THROWS(toys.Render({1, 4}), "slot 4 has no screen: it was never reset");
}

TEST(StatesAndFailures) {
  Toys toys(4, {{"show", "true"}});
  toys.Reset({1, 3}, {8, 5});
  toys.Step({3}, {2});
  std::vector<double> states(6);
  toys.pool.State({3, 1}, states.data());
  CHECK_EQ(states, (std::vector<double>{2, 1, 5, 0, 0, 8}));
  CHECK_EQ(toys.pool.Failure(1), "");
  CHECK_EQ(toys.pool.Failure(3), "seed");
  CHECK_THROWS(toys.pool.Failure(4), "slot 4 is out of range [0, 4)");
  CHECK_THROWS(toys.pool.State({0}, states.data()), "slot 0 has no state: it was never reset");
  Toys blind(1);
  blind.Reset({0}, {1});
  CHECK_THROWS(blind.pool.State({0}, states.data()), "a state is not supported by this environment");
}

TEST(ManyThreadsOnTheirOwnSlots) {
  constexpr int kThreads = 4, kEach = 10;
  Toys toys(kThreads * kEach, {{"length", "5"}}, 3);
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        std::vector<int64_t> slots;
        for (int64_t s = 0; s < kEach; ++s) slots.push_back(s * kThreads + t);
        for (int episode = 0; episode < 20; ++episode) {
          toys.Reset(slots, std::vector<uint64_t>(kEach, 8));
          for (int step = 1; step <= 5; ++step) {
            Rewards expected(kEach, 2.0 * step + 1);
            expected.push_back(step == 5 ? kEach : 0);
            CHECK_EQ(toys.Step(slots, std::vector<int32_t>(kEach, 2)), expected);
            CHECK_EQ(toys.Observe(slots)[3 * kEach - 1], 2.0f * step);
          }
        }
      } catch (const std::exception& e) {
        failures[t] = e.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) CHECK_EQ(failure, "");
}

TEST(LastRegistrationWins) {
  RegisterEnvFamily("other", [](const EnvOptions&) -> std::unique_ptr<EnvFactory> { ThrowInvalid("the first"); });
  RegisterEnvFamily("other", [](const EnvOptions&) -> std::unique_ptr<EnvFactory> { ThrowInvalid("the second"); });
  CHECK_THROWS(MakeEnvFactory("other", {}), "the second");
  CHECK_THROWS(MakeEnvFactory("", {}), "environment family '' is unknown, expected one of: other, toy");
}

TEST(BytesOfASpec) {
  EnvSpec spec;
  spec.observation_dtype = DType::kUint8;
  spec.observation_shape = {84, 84, 4};
  spec.num_actions = 18;
  CHECK_EQ(spec.observation_bytes(), 28224);
  CHECK_EQ(spec.action_bytes(), 4);
  spec.observation_dtype = DType::kFloat64;
  spec.observation_shape = {376};
  spec.action_dtype = DType::kFloat32;
  spec.num_actions = 17;
  CHECK_EQ(spec.observation_bytes(), 3008);
  CHECK_EQ(spec.action_bytes(), 68);
  spec.behavior_dtype = DType::kFloat64;
  spec.behavior_shape = {3};
  spec.render_shape = {210, 160, 3};
  CHECK_EQ(spec.behavior_bytes(), 24);
  CHECK_EQ(spec.render_bytes(), 100800);
}
