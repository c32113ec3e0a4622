// Toy environments for tests of the env pool: they count, and fail on request.
#ifndef NEUROEVO_TESTS_NATIVE_ENVS_TOYS_H_
#define NEUROEVO_TESTS_NATIVE_ENVS_TOYS_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "envs/env_pool.h"
#include "native/check.h"

namespace neuroevo {

// Seeds and actions that make the toy fail.
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
inline Gate gate;

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
    spec_.memory = options.Int("memory", 0, 0, int64_t{1} << 40);
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

inline const bool registered =
    RegisterEnvFamily("toy", [](const EnvOptions& options) { return std::make_unique<ToyFactory>(options); });

// Pool of toys with shorthand calls.
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

}  // namespace neuroevo

#endif  // NEUROEVO_TESTS_NATIVE_ENVS_TOYS_H_
