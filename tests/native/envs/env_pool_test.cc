// The env pool and the registry of families, on a toy family: values, every error, exceptions from environments. (The
// reading of options is in env_options_test.cc, normalizers and ended episodes are in env_episodes_test.cc.)
#include "envs/env_pool.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

// Seeds and actions with which the toy misbehaves.
constexpr uint64_t kResetThrows = 666, kObserveThrows = 777, kResetWaits = 555;
constexpr int32_t kStepThrows = 3;

// kResetWaits waits here until a test opens it.
class Gate {
 public:
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
  }
  void AwaitVisitor() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }
  void Set(bool open) {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};
Gate gate;

// Observes (seed, steps, sum of actions); with the option show, its behavior is (steps, seed), its screen two
// pixels of the seed, the steps and 255, its state (sum, steps, seed), and its failure "seed" where that is odd. Its
// reward is the sum of actions plus seed / 8; it ends after `length` steps or max_frames frames of 2 a step.
class Toy : public Env {
 public:
  explicit Toy(const EnvSpec& spec, int64_t length) : spec_(spec), length_(length) {}

  void Reset(uint64_t seed, int64_t max_frames) override {
    if (seed == kResetThrows) ThrowInvalid("the toy cannot be reset");
    if (seed == kResetWaits) gate.Pass();
    seed_ = seed;
    steps_ = 0;
    sum_ = 0;
    last_step_ = max_frames == 0 ? length_ : std::min(length_, max_frames / 2);
  }

  StepResult Step(const void* action) override {
    if (spec_.discrete()) {
      const int32_t button = *static_cast<const int32_t*>(action);
      if (button == kStepThrows) ThrowInvalid("the toy broke");
      sum_ += button;
    } else {
      for (int64_t a = 0; a < spec_.num_actions; ++a) sum_ += static_cast<const float*>(action)[a];
    }
    ++steps_;
    return {sum_ + static_cast<double>(seed_) / 8, steps_ >= last_step_};
  }

  void Observe(void* out) const override {
    if (seed_ == kObserveThrows) ThrowInvalid("the toy cannot be seen");
    auto* values = static_cast<float*>(out);
    values[0] = static_cast<float>(seed_);
    values[1] = static_cast<float>(steps_);
    values[2] = static_cast<float>(sum_);
  }

  void Behavior(void* out) const override {
    if (spec_.behavior_shape.empty()) return Env::Behavior(out);
    auto* values = static_cast<double*>(out);
    values[0] = static_cast<double>(steps_);
    values[1] = static_cast<double>(seed_);
  }

  void State(double* out) const override {
    if (spec_.state_size == 0) return Env::State(out);
    out[0] = sum_;
    out[1] = static_cast<double>(steps_);
    out[2] = static_cast<double>(seed_);
  }

  std::string Failure() const override { return seed_ % 2 == 1 ? "seed" : ""; }

  void Render(uint8_t* rgb) const override {
    if (spec_.render_shape.empty()) return Env::Render(rgb);
    for (int pixel = 0; pixel < 2; ++pixel) {
      *rgb++ = static_cast<uint8_t>(seed_);
      *rgb++ = static_cast<uint8_t>(steps_);
      *rgb++ = 255;
    }
  }

 private:
  const EnvSpec& spec_;
  int64_t length_, last_step_ = 0, steps_ = 0;
  uint64_t seed_ = 0;
  double sum_ = 0;
};

class ToyFactory : public EnvFactory {
 public:
  explicit ToyFactory(const EnvOptions& given) {
    OptionReader options("toy", given);
    const std::string actions = options.String("actions", "discrete");
    spec_.num_actions = options.Int("num_actions", 4, 1, 9);
    length_ = options.Int("length", 1000, 1, 1000);
    if (options.Bool("show", false)) {
      spec_.behavior_dtype = DType::kFloat64;
      spec_.behavior_shape = {2};
      spec_.render_shape = {1, 2, 3};
      spec_.state_size = 3;
    }
    spec_.steps_per_task = options.Int("steps_per_task", 1, 1, 99);
    spec_.observations_per_task = options.Int("observations_per_task", 8, 1, 99);
    options.Finish();
    spec_.observation_shape = {3};
    spec_.action_dtype = actions == "discrete" ? DType::kInt32 : DType::kFloat32;
    if (actions == "vector") spec_.action_low.assign(spec_.num_actions, -1);
    spec_.action_high.assign(spec_.action_low.size(), 1);
    spec_.frame_skip = 2;
  }
  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<Toy>(spec_, length_); }

 private:
  EnvSpec spec_;
  int64_t length_;
};

const bool registered =
    RegisterEnvFamily("toy", [](const EnvOptions& options) { return std::make_unique<ToyFactory>(options); });

// A pool of toys with its calls made short.
struct Toys {
  EnvPool pool;

  explicit Toys(int64_t slots, EnvOptions options = {}, int threads = 2)
      : pool("toy", options, slots, std::make_shared<ThreadPool>(threads)) {}
  void Reset(std::vector<int64_t> slots, std::vector<uint64_t> seeds, int64_t max_frames = 0) {
    std::vector<int64_t> frames(slots.size(), max_frames);
    pool.Reset(std::move(slots), std::move(seeds), std::move(frames));
  }
  // Rewards and, as its last values, the number of slots that are done.
  std::vector<double> Step(std::vector<int64_t> slots, const std::vector<int32_t>& actions) {
    return StepBytes(std::move(slots), actions.data());
  }
  std::vector<double> StepBytes(std::vector<int64_t> slots, const void* actions) {
    const size_t k = slots.size();
    std::vector<double> rewards(k, -1);
    auto dones = std::make_unique<bool[]>(k);
    pool.Step(std::move(slots), actions, rewards.data(), dones.get());
    rewards.push_back(static_cast<double>(std::count(dones.get(), dones.get() + k, true)));
    return rewards;
  }
  std::vector<float> Observe(std::vector<int64_t> slots) {
    std::vector<float> out(3 * slots.size(), -1);
    pool.Observe(std::move(slots), out.data());
    return out;
  }
  std::vector<double> Behavior(std::vector<int64_t> slots) {
    std::vector<double> out(2 * slots.size(), -1);
    pool.Behavior(std::move(slots), out.data());
    return out;
  }
  std::vector<uint8_t> Render(std::vector<int64_t> slots) {
    std::vector<uint8_t> out(6 * slots.size(), 1);
    pool.Render(std::move(slots), out.data());
    return out;
  }
};

using Rewards = std::vector<double>;
using Values = std::vector<float>;

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

TEST(SlotErrors) {
  Toys toys(8);
  toys.Reset({0, 1, 2, 3}, {0, 0, 0, 0});
  for (int64_t bad :
       {int64_t{8}, int64_t{-1}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    const std::string message = "slot " + std::to_string(bad) + " is out of range [0, 8)";
    CHECK_THROWS(toys.Reset({0, bad}, {1, 1}), message);
    CHECK_THROWS(toys.Step({0, bad}, {1, 1}), message);
    CHECK_THROWS(toys.Observe({0, bad}), message);
  }
  for (const std::vector<int64_t>& twice : {std::vector<int64_t>{1, 1, 2}, {1, 2, 1}, {2, 0, 1, 1}}) {
    const std::string message = "slot 1 occurs more than once in one call";
    CHECK_THROWS(toys.Reset(twice, std::vector<uint64_t>(twice.size())), message);
    CHECK_THROWS(toys.Step(twice, std::vector<int32_t>(twice.size())), message);
    CHECK_THROWS(toys.Observe(twice), message);
  }
  CHECK_THROWS(toys.Step({0, 5}, {1, 1}), "slot 5 is not live: its episode is over or it was never reset");
  CHECK_THROWS(toys.Observe({0, 5}), "slot 5 has no observation");
  CHECK_THROWS(toys.Reset({0, 1}, {1}), "seeds has 1 values, expected one per slot: 2");
  CHECK_THROWS(toys.pool.Reset({0, 1}, {1, 1}, {0, 0, 0}), "max_frames has 3 values, expected one per slot: 2");
  CHECK_THROWS(toys.pool.Reset({0, 1}, {1, 1}, {0, 0}, {5}), "episodes has 1 values, expected one per slot: 2");
  CHECK_THROWS(toys.pool.Reset({0, 1}, {1, 1}, {0, 0}, {5, -2}), "episode of slot 1 is -2, expected -1 (none) or more");
  CHECK_THROWS(toys.pool.Reset({0, 1}, {1, 1}, {0, 0}, {}, {-1}), "normalizers has 1 values, expected one per slot: 2");
  CHECK_THROWS(toys.pool.Reset({0, 1}, {1, 1}, {0, 0}, {}, {-1, 3}), "normalizer 3 is not set");
  CHECK_THROWS(toys.Reset({0, 1}, {1, 1}, -5), "max_frames of slot 0 is -5, expected 0 or more");
  // None of these left a slot marked as busy, or changed.
  CHECK_EQ(toys.Step({3, 2, 1, 0}, {1, 1, 1, 1}), (Rewards{1, 1, 1, 1, 0}));
}

TEST(ActionOutOfRange) {
  Toys toys(2);
  toys.Reset({0, 1}, {0, 0});
  CHECK_THROWS(toys.Step({0, 1}, {1, 4}), "action 4 of slot 1 is out of range [0, 4)");
  CHECK_THROWS(toys.Step({1, 0}, {1, -1}), "action -1 of slot 0 is out of range [0, 4)");
  CHECK_EQ(toys.Observe({0, 1}), (Values{0, 0, 0, 0, 0, 0}));
}

TEST(StepAfterTheEnd) {
  Toys toys(2, {{"length", "2"}});
  toys.Reset({0, 1}, {8, 8});
  toys.Step({0}, {0});
  CHECK_EQ(toys.Step({0, 1}, {1, 1}), (Rewards{2, 2, 1}));
  CHECK_THROWS(toys.Step({1, 0}, {1, 1}), "slot 0 is not live");
  CHECK_EQ(toys.Observe({0}), (Values{8, 2, 1}));  // what it looked like at the end
  CHECK_EQ(toys.Step({1}, {1}), (Rewards{3, 1}));
  toys.Reset({0}, {16});
  CHECK_EQ(toys.Step({0}, {1}), (Rewards{3, 0}));
}

TEST(SlotInUseByAnotherCall) {
  Toys toys(4);
  toys.Reset({0, 1, 2, 3}, {0, 0, 0, 0});
  gate.Set(false);
  std::thread other([&] { toys.Reset({3, 2}, {1, kResetWaits}); });
  gate.AwaitVisitor();
  const std::string message = "slot 2 is in use by another call";
  CHECK_THROWS(toys.Step({0, 2, 1}, {1, 1, 1}), message);
  CHECK_THROWS(toys.Reset({2}, {1}), message);
  CHECK_THROWS(toys.Observe({1, 2}), message);
  CHECK_THROWS(toys.Step({3}, {1}), "slot 3 is in use by another call");  // until the whole call is over
  CHECK_EQ(toys.Step({1, 0}, {1, 1}), (Rewards{1, 1, 0}));                // the others were let go
  gate.Set(true);
  other.join();
  CHECK_EQ(toys.Step({2, 3}, {1, 1}), (Rewards{1 + kResetWaits / 8.0, 1.125, 0}));
}

TEST(ExceptionInStep) {
  for (int threads : {1, 3}) {
    Toys toys(3, {}, threads);
    toys.Reset({0, 1, 2}, {0, 0, 0});
    CHECK_THROWS(toys.Step({0, 1, 2}, {1, kStepThrows, 1}), "the toy broke");
    CHECK_THROWS(toys.Step({1}, {1}), "slot 1 is not live");  // nobody knows what state it is in
    toys.Reset({1}, {8});
    CHECK_EQ(toys.Step({1}, {1}), (Rewards{2, 0}));
    toys.Step({0, 2}, {0, 0});  // the others are as good as before
  }
}

TEST(ExceptionInReset) {
  Toys toys(3);
  toys.Reset({0, 1}, {0, 0});
  CHECK_THROWS(toys.Reset({1}, {kResetThrows}), "the toy cannot be reset");
  CHECK_THROWS(toys.Step({1}, {1}), "slot 1 is not live");
  CHECK_THROWS(toys.Observe({1}), "slot 1 has no observation");
  CHECK_THROWS(toys.Reset({2}, {kResetThrows}), "the toy cannot be reset");
  CHECK_THROWS(toys.Observe({2}), "slot 2 has no observation");
  CHECK_EQ(toys.Step({0}, {1}), (Rewards{1, 0}));
  toys.Reset({1, 2}, {8, 8});
  CHECK_EQ(toys.Step({1, 2}, {1, 2}), (Rewards{2, 3, 0}));
}

TEST(ExceptionInObserve) {
  constexpr int64_t kSlots = 30;
  Toys toys(kSlots);
  std::vector<int64_t> all;
  for (int64_t s = 0; s < kSlots; ++s) all.push_back(s);
  toys.Reset(all, std::vector<uint64_t>(kSlots, 8));
  toys.Reset({9}, {kObserveThrows});
  CHECK_THROWS(toys.Observe({9}), "the toy cannot be seen");  // a few slots: in this thread
  CHECK_THROWS(toys.Observe(all), "the toy cannot be seen");  // many: on the pool
  CHECK_EQ(toys.Observe({8}), (Values{8, 0, 0}));
  CHECK_EQ(toys.Step({9}, {1}), (Rewards{1 + kObserveThrows / 8.0, 0}));  // it may still be played
  toys.Reset({9}, {16});
  CHECK_EQ(toys.Observe({9}), (Values{16, 0, 0}));
  CHECK_EQ(toys.Observe(all).size(), 3 * kSlots);
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

TEST(NoBehaviorsAndNoScreens) {
  Toys toys(2);
  toys.Reset({0}, {1});
  CHECK_THROWS(toys.Behavior({0}), "behavior is not supported by this environment");
  CHECK_THROWS(toys.Render({0}), "rendering is not supported by this environment");
  const EnvSpec spec;
  const Toy toy(spec, 1);
  CHECK_THROWS(toy.Behavior(nullptr), "behavior is not supported by this environment");
  CHECK_THROWS(toy.Render(nullptr), "rendering is not supported by this environment");
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

TEST(TwoThreadsFightForASlot) {
  // Either a call has all of its slots or it fails as a whole: every step that was counted did happen.
  Toys toys(3);
  toys.Reset({0, 1, 2}, {0, 0, 0});
  std::atomic<int> counted[3] = {};
  std::atomic<int> strange{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const int64_t mine = t, next = (t + 1) % 3;
      for (int i = 0; i < 100; ++i) {
        try {
          toys.Step({mine, next}, {1, 1});
          ++counted[mine];
          ++counted[next];
        } catch (const std::exception& e) {
          if (std::string(e.what()).find("is in use by another call") == std::string::npos) ++strange;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(strange.load(), 0);
  const Values seen = toys.Observe({0, 1, 2});
  for (int s = 0; s < 3; ++s) CHECK_EQ(seen[3 * s + 1], static_cast<float>(counted[s].load()));
}

TEST(MakingErrors) {
  const auto pool = std::make_shared<ThreadPool>(1);
  CHECK_THROWS(EnvPool("tetris", {}, 1, pool), "environment family 'tetris' is unknown, expected one of: toy");
  CHECK_THROWS(EnvPool("toy", {}, 0, pool), "number of slots is 0, expected 1 to 65536");
  CHECK_THROWS(EnvPool("toy", {}, -2, pool), "number of slots is -2, expected 1 to 65536");
  CHECK_THROWS(EnvPool("toy", {}, 65537, pool), "number of slots is 65537, expected 1 to 65536");
  CHECK_THROWS(EnvPool("toy", {{"lenght", "5"}}, 1, pool), "toy has no option 'lenght'");
  CHECK_THROWS(EnvPool("toy", {{"actions", "unbounded"}}, 1, pool), "family 'toy' has 0 bounds of actions, expected 4");
  CHECK_THROWS(EnvPool("toy", {{"length", "0"}}, 1, pool),
               "toy option length is '0', expected an integer in [1, 1000]");
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
