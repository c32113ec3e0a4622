// Environments with Gymnasium's vector API, on a toy family: outputs of each autoreset mode, seeds, every error,
// exceptions of environments, concurrent calls, and the C interface.
#include "envs/vector_env.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "c_api/neuroevo.h"
#include "c_api/vector_env.h"
#include "core/error.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

constexpr int64_t kStepThrows = 3;                 // an action
std::atomic<bool> hold_steps{false}, held{false};  // steps wait while the first is true, and set the second

// Observes (seed, steps). An episode ends after action 2 or at the time limit; its reward is the action; its failure is
// "odd" if the number of steps is odd.
class Toy : public Env {
 public:
  void Reset(uint64_t seed, int64_t max_frames) override {
    seed_ = seed;
    steps_ = 0;
    last_step_ = max_frames / 2;
  }
  StepResult Step(const void* action) override {
    while (hold_steps) {
      held = true;
      std::this_thread::yield();
    }
    const int32_t button = *static_cast<const int32_t*>(action);
    if (button == kStepThrows) ThrowInvalid("the toy broke");
    ++steps_;
    over_ = button == 2;
    return {static_cast<double>(button), over_ || truncated()};
  }
  void Observe(void* out) const override {
    static_cast<double*>(out)[0] = static_cast<double>(seed_);
    static_cast<double*>(out)[1] = static_cast<double>(steps_);
  }
  std::string Failure() const override { return steps_ % 2 == 1 ? "odd" : ""; }
  void Render(uint8_t* rgb) const override { rgb[0] = rgb[1] = rgb[2] = static_cast<uint8_t>(seed_); }

 protected:
  bool truncated() const { return last_step_ > 0 && steps_ >= last_step_; }
  uint64_t seed_ = 0;
  int64_t steps_ = 0, last_step_ = 0;
  bool over_ = false;
};

// The same, but also reports how its episodes end. Its infos are the steps and the seed.
class TellingToy : public Toy, public EpisodeInfo {
 public:
  End HowItEnded() const override { return {over_, truncated()}; }
  std::vector<std::string> InfoNames() const override { return {"steps", "seed"}; }
  void Infos(int64_t* out) const override {
    out[0] = steps_;
    out[1] = static_cast<int64_t>(seed_);
  }
};

template <class Kind>
class ToyFactory : public EnvFactory {
 public:
  explicit ToyFactory(bool discrete, int64_t per_task = 1) {
    spec_.observation_dtype = DType::kFloat64;
    spec_.observation_shape = {2};
    spec_.action_dtype = discrete ? DType::kInt32 : DType::kFloat32;
    spec_.num_actions = discrete ? 4 : 2;
    if (!discrete) spec_.action_low = spec_.action_high = {0, 0};
    spec_.frame_skip = 2;
    if (discrete) spec_.render_shape = {1, 1, 3};
    spec_.steps_per_task = per_task;
  }
  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<Kind>(); }

 private:
  EnvSpec spec_;
};

const bool registered =
    RegisterEnvFamily("toy", [](const EnvOptions&) { return std::make_unique<ToyFactory<Toy>>(true); }) &&
    RegisterEnvFamily("telling", [](const EnvOptions&) { return std::make_unique<ToyFactory<TellingToy>>(true); }) &&
    RegisterEnvFamily("fours", [](const EnvOptions&) { return std::make_unique<ToyFactory<TellingToy>>(true, 4); }) &&
    RegisterEnvFamily("vector", [](const EnvOptions&) { return std::make_unique<ToyFactory<Toy>>(false); });

// N environments and their output arrays.
class Vector {
 public:
  explicit Vector(int64_t n, VectorEnv::Autoreset mode, int64_t max_steps = 0, const std::string& family = "telling")
      : env(family, {}, n, mode, max_steps, std::make_shared<ThreadPool>(3)),
        observations(2 * n),
        rewards(n),
        infos(2 * n),
        final_observations(2 * n, -1),
        final_infos(2 * n, -1),
        flags_(std::make_unique<bool[]>(6 * n)),
        n_(n) {}

  void Reset(const std::vector<uint64_t>& seeds) {
    for (int64_t i = 0; i < n_; ++i) flags_[3 * n_ + i] = flags_[4 * n_ + i] = true;
    env.Reset(&flags_[3 * n_], &flags_[4 * n_], seeds.data(), Out());
  }
  void GoOn(const std::vector<bool>& mask) {  // a reset without seeds
    for (int64_t i = 0; i < n_; ++i) flags_[3 * n_ + i] = mask[i], flags_[4 * n_ + i] = false;
    env.Reset(&flags_[3 * n_], &flags_[4 * n_], nullptr, Out());
  }
  void Step(const std::vector<int64_t>& actions) { env.Step(actions.data(), Out()); }
  std::vector<int> terminations() const { return Flags(0); }
  std::vector<int> truncations() const { return Flags(1); }
  std::vector<int> failures() const { return Flags(2); }

  VectorEnv env;
  std::vector<double> observations, rewards;
  std::vector<int64_t> infos;
  std::vector<double> final_observations;
  std::vector<int64_t> final_infos;

 private:
  VectorEnv::Output Out() {
    return {observations.data(),       rewards.data(),    &flags_[0], &flags_[n_], &flags_[2 * n_], infos.data(),
            final_observations.data(), final_infos.data()};
  }
  std::vector<int> Flags(int which) const { return {&flags_[which * n_], &flags_[which * n_] + n_}; }

  std::unique_ptr<bool[]> flags_;  // terminations, truncations, failures, masks of resets
  int64_t n_;
};

double Next(uint64_t seed, uint64_t episode) { return static_cast<double>(VectorEnv::EpisodeSeed(seed, episode)); }
using Doubles = std::vector<double>;
using Ints = std::vector<int>;
using Mode = VectorEnv::Autoreset;

}  // namespace

TEST(the_next_step_begins_the_next_episode) {
  Vector two(2, Mode::kNextStep, 3);
  two.Reset({5, 6});
  CHECK_EQ(two.observations, (Doubles{5, 0, 6, 0}));
  CHECK_EQ(two.infos, (std::vector<int64_t>{0, 0, 5, 6}));
  two.Step({1, 2});
  CHECK_EQ(two.observations, (Doubles{5, 1, 6, 1}));
  CHECK_EQ(two.rewards, (Doubles{1, 2}));
  CHECK_EQ(two.terminations(), (Ints{0, 1}));
  CHECK_EQ(two.truncations(), (Ints{0, 0}));
  CHECK_EQ(two.failures(), (Ints{0, 1}));  // of an episode that is over, not of the other one
  CHECK_EQ(two.env.Failure(0), "");
  CHECK_EQ(two.env.Failure(1), "odd");
  two.Step({1, 1});
  CHECK_EQ(two.observations, (Doubles{5, 2, Next(6, 1), 0}));
  CHECK_EQ(two.rewards, (Doubles{1, 0}));  // the action of a reset is ignored
  CHECK_EQ(two.terminations(), (Ints{0, 0}));
  two.Step({2, 1});
  CHECK_EQ(two.terminations(), (Ints{1, 0}));
  CHECK_EQ(two.truncations(), (Ints{1, 0}));  // both at once
  CHECK_EQ(two.final_observations, Doubles(4, -1));
}

TEST(the_same_step_begins_the_next_episode) {
  Vector two(2, Mode::kSameStep, 2);
  two.Reset({5, 6});
  two.Step({1, 2});
  CHECK_EQ(two.observations, (Doubles{5, 1, Next(6, 1), 0}));
  CHECK_EQ(two.rewards, (Doubles{1, 2}));
  CHECK_EQ(two.terminations(), (Ints{0, 1}));
  CHECK_EQ(two.final_observations, (Doubles{-1, -1, 6, 1}));
  CHECK_EQ(two.final_infos, (std::vector<int64_t>{-1, 1, -1, 6}));
  CHECK_EQ(two.infos[0], 1);
  CHECK_EQ(two.infos[1], 0);
  CHECK_EQ(two.env.Failure(1), "odd");
  two.Step({0, 0});
  CHECK_EQ(two.observations, (Doubles{Next(5, 1), 0, Next(6, 1), 1}));
  CHECK_EQ(two.truncations(), (Ints{1, 0}));
  CHECK_EQ(two.failures(), (Ints{0, 0}));
}

TEST(without_autoreset_episodes_that_are_over_wait) {
  Vector two(2, Mode::kDisabled, 0);
  two.Reset({5, 6});
  two.Step({1, 2});
  CHECK_EQ(two.observations, (Doubles{5, 1, 6, 1}));
  CHECK_THROWS(two.Step({1, 1}), "the episode of environment 1 is over: without autoreset, call reset before");
  two.GoOn({false, true});
  CHECK_EQ(two.observations, (Doubles{5, 1, Next(6, 1), 0}));
  two.Step({1, 1});
  CHECK_EQ(two.observations, (Doubles{5, 2, Next(6, 1), 1}));
}

TEST(of_a_family_that_does_not_tell_an_end_is_a_termination) {
  Vector two(2, Mode::kNextStep, 1, "toy");
  CHECK(two.env.info_names().empty());
  two.Reset({5, 6});
  two.Step({1, 2});
  CHECK_EQ(two.terminations(), (Ints{1, 1}));
  CHECK_EQ(two.truncations(), (Ints{0, 0}));
}

TEST(environments_may_share_a_task) {
  Vector ten(10, Mode::kSameStep, 3, "fours"), alone(10, Mode::kSameStep, 3);
  std::vector<uint64_t> seeds(10);
  std::vector<int64_t> actions(10);
  for (int64_t i = 0; i < 10; ++i) seeds[i] = 100 + i;
  for (Vector* vector : {&ten, &alone}) vector->Reset(seeds);
  for (int64_t step = 0; step < 8; ++step) {
    for (int64_t i = 0; i < 10; ++i) actions[i] = (i + step) % 3;
    for (Vector* vector : {&ten, &alone}) vector->Step(actions);
    CHECK_EQ(ten.observations, alone.observations);
    CHECK_EQ(ten.rewards, alone.rewards);
    CHECK_EQ(ten.terminations(), alone.terminations());
    CHECK_EQ(ten.truncations(), alone.truncations());
    CHECK_EQ(ten.final_observations, alone.final_observations);
    CHECK_EQ(ten.infos, alone.infos);
  }
  actions[5] = kStepThrows;
  CHECK_THROWS(ten.Step(actions), "the toy broke");
  ten.Reset(seeds);
}

TEST(seeds_of_episodes_differ) {
  std::set<uint64_t> seen;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{1} << 62}) {
    CHECK_EQ(VectorEnv::EpisodeSeed(seed, 0), seed);
    for (uint64_t episode = 0; episode < 1000; ++episode) {
      const uint64_t next = VectorEnv::EpisodeSeed(seed, episode);
      CHECK(next < uint64_t{1} << 63);
      seen.insert(next);
    }
  }
  CHECK_EQ(seen.size(), 4000);
}

TEST(a_seed_begins_anew_and_none_goes_on) {
  Vector two(2, Mode::kNextStep);
  CHECK_THROWS(two.GoOn({true, true}), "environment 0 has no seed");
  CHECK_THROWS(two.GoOn({false, true}), "environment 0 has no episode yet, but the mask excludes it");
  CHECK_THROWS(two.Step({0, 0}), "environment 0 has no episode: call reset before step");
  two.Reset({5, 6});
  two.GoOn({true, false});
  CHECK_EQ(two.observations, (Doubles{Next(5, 1), 0, 6, 0}));
  two.Reset({5, 5});
  CHECK_EQ(two.observations, (Doubles{5, 0, 5, 0}));
}

TEST(wrong_actions_change_nothing) {
  Vector two(2, Mode::kNextStep);
  two.Reset({5, 6});
  CHECK_THROWS(two.Step({0, 4}), "action 4 of environment 1 is out of range [0, 4)");
  CHECK_THROWS(two.Step({-1, 0}), "action -1 of environment 0 is out of range [0, 4)");
  CHECK_THROWS(two.Step({int64_t{1} << 32, 0}), "action 4294967296 of environment 0 is out of range [0, 4)");
  two.Step({1, 1});
  CHECK_EQ(two.observations, (Doubles{5, 1, 6, 1}));
  Vector vector(1, Mode::kNextStep, 0, "vector");
  vector.Reset({5});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  int64_t bits = 0;
  const float action[2] = {0, nan};
  static_assert(sizeof(action) == sizeof(bits), "two floats");
  std::copy_n(reinterpret_cast<const char*>(action), sizeof(bits), reinterpret_cast<char*>(&bits));
  CHECK_THROWS(vector.Step({bits}), "action[1] of environment 0 is nan, expected a finite number");
}

TEST(after_an_exception_all_need_a_reset) {
  Vector four(4, Mode::kNextStep);
  four.Reset({1, 2, 3, 4});
  CHECK_THROWS(four.Step({0, kStepThrows, 0, 0}), "the toy broke");
  CHECK_THROWS(four.Step({0, 0, 0, 0}), "environment 0 has no episode: call reset before step");
  four.Reset({1, 2, 3, 4});
  four.Step({0, 0, 0, 0});
  CHECK_EQ(four.observations, (Doubles{1, 1, 2, 1, 3, 1, 4, 1}));
}

TEST(one_call_at_a_time) {
  Vector two(2, Mode::kNextStep);
  two.Reset({5, 6});
  hold_steps = true;
  std::thread other([&] { two.Step({0, 0}); });
  while (!held) std::this_thread::yield();
  CHECK_THROWS(two.Step({0, 0}), "the environments are in use by another call");
  CHECK_THROWS(two.env.Failure(0), "the environments are in use by another call");
  hold_steps = false;
  other.join();
  CHECK_EQ(two.observations, (Doubles{5, 1, 6, 1}));
}

TEST(screens) {
  Vector two(2, Mode::kNextStep);
  std::vector<uint8_t> screens(6);
  CHECK_THROWS(two.env.Render(screens.data()), "environment 0 has no episode: call reset before render");
  two.Reset({5, 6});
  two.env.Render(screens.data());
  CHECK_EQ(screens, (std::vector<uint8_t>{5, 5, 5, 6, 6, 6}));
  Vector vector(1, Mode::kNextStep, 0, "vector");
  vector.Reset({5});
  CHECK_THROWS(vector.env.Render(screens.data()), "rendering is not supported by this environment");
}

TEST(bad_arguments) {
  CHECK_THROWS(Vector(0, Mode::kNextStep), "num_envs is 0, expected 1 to 65536");
  CHECK_THROWS(Vector(1, Mode::kNextStep, -1), "max_steps is -1, expected 0 (the environment's own) to 1000000000");
  CHECK_THROWS(Vector(1, Mode::kNextStep, 0, "tay"), "tay");
  Vector one(1, Mode::kNextStep);
  CHECK_THROWS(one.env.Failure(1), "environment 1 is out of range [0, 1)");
}

TEST(the_c_interface) {
  neuroevo_vector_env* env = nullptr;
  CHECK(neuroevo_vector_make("telling", nullptr, 0, 1, "Never", 0, 1, &env) != 0);
  CHECK_EQ(std::string(neuroevo_last_error()), "autoreset is 'Never', expected NextStep, SameStep or Disabled");
  CHECK_EQ(neuroevo_vector_make("telling", nullptr, 0, 1, "SameStep", 0, 1, &env), 0);
  neuroevo_vector_spec spec;
  CHECK_EQ(neuroevo_vector_get_spec(env, &spec), 0);
  CHECK_EQ(std::string(spec.observation_dtype), "float64");
  CHECK_EQ(spec.observation_shape[0], 2);
  CHECK_EQ(spec.infos, 2);
  CHECK_EQ(std::string(spec.info_names[1]), "seed");
  CHECK_EQ(spec.render_rank, 3);
  double observation[2], reward, last[2];
  uint8_t flags[3];
  int64_t infos[2], final_infos[2];
  const neuroevo_vector_output out = {observation, &reward, &flags[0], &flags[1], &flags[2], infos, last, final_infos};
  const uint8_t yes = 1;
  const uint64_t seed = 9;
  const int64_t wrong = 7, right = 2;
  CHECK_EQ(neuroevo_vector_reset(env, &yes, &yes, &seed, &out), 0);
  CHECK_EQ(neuroevo_vector_step(env, &wrong, &out), NEUROEVO_OUT_OF_RANGE);
  CHECK_EQ(neuroevo_vector_step(env, &right, &out), 0);
  CHECK_EQ(reward, 2);
  CHECK_EQ(last[0], 9);
  CHECK_EQ(final_infos[0], 1);
  const char* failure = nullptr;
  CHECK_EQ(neuroevo_vector_failure(env, 0, &failure), 0);
  CHECK_EQ(std::string(failure), "odd");
  neuroevo_vector_free(env);
  neuroevo_vector_free(nullptr);
}
