// A quick environment of the families fuzz_buttons (discrete actions, bytes to see) and fuzz_joints (a vector,
// doubles), which breaks at some seeds: at a reset, in a step, or so that its episode has a failure.
#ifndef NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_TOY_H_
#define NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_TOY_H_

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "envs/env.h"
#include "envs/episode_info.h"

namespace neuroevo::fuzz {

class Toy : public Env, public EpisodeInfo {
 public:
  Toy(const EnvSpec& spec, int64_t length) : spec_(spec), length_(length) {}

  void Reset(uint64_t seed, int64_t max_frames) override {
    if (seed % 11 == 5) ThrowInvalid("the toy cannot be reset");
    seed_ = seed;
    step_ = 0;
    last_ = max_frames == 0 ? length_ : std::min(length_, max_frames);
    end_ = {};
  }
  StepResult Step(const void*) override {
    if (seed_ % 13 == 6) ThrowInvalid("the toy broke");
    ++step_;
    end_ = {!Failure().empty(), step_ >= last_};
    return {static_cast<double>(seed_ % 5), end_.terminated || end_.truncated};
  }
  void Observe(void* out) const override {
    if (spec_.observation_dtype == DType::kUint8) {
      std::fill_n(static_cast<uint8_t*>(out), 6, static_cast<uint8_t>(seed_ + step_));
    } else {
      std::fill_n(static_cast<double*>(out), 3, static_cast<double>(step_) / 4);
    }
  }
  void Behavior(void* out) const override {
    if (spec_.behavior_shape.empty()) return Env::Behavior(out);
    std::fill_n(static_cast<float*>(out), 2, static_cast<float>(step_));
  }
  void State(double* out) const override {
    if (spec_.state_size == 0) return Env::State(out);
    std::fill_n(out, 2, static_cast<double>(step_));
  }
  std::string Failure() const override { return seed_ % 7 == 3 && step_ == 2 ? "the toy failed" : ""; }
  void Render(uint8_t* rgb) const override {
    if (spec_.render_shape.empty()) return Env::Render(rgb);
    std::fill_n(rgb, 6, static_cast<uint8_t>(step_));
  }
  End HowItEnded() const override { return end_; }
  std::vector<std::string> InfoNames() const override { return {"step", "seed"}; }
  void Infos(int64_t* out) const override {
    out[0] = step_;
    out[1] = static_cast<int64_t>(seed_);
  }

 private:
  const EnvSpec& spec_;
  int64_t length_, last_ = 0, step_ = 0;
  uint64_t seed_ = 0;
  End end_;
};

class ToyFactory : public EnvFactory {
 public:
  ToyFactory(bool buttons, const EnvOptions& given) {
    OptionReader options("toy", given);
    length_ = options.Int("length", 5, 1, 20);
    options.Finish();
    spec_.observation_dtype = buttons ? DType::kUint8 : DType::kFloat64;
    spec_.observation_shape = {buttons ? 6 : 3};
    spec_.action_dtype = buttons ? DType::kInt32 : DType::kFloat32;
    spec_.num_actions = buttons ? 3 : 2;
    if (!buttons) {
      spec_.action_low = {-1, -2};
      spec_.action_high = {1, 2};
      spec_.behavior_shape = {2};
      spec_.render_shape = {1, 2, 3};
      spec_.state_size = 2;
    }
    spec_.frame_skip = buttons ? 4 : 1;
  }
  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<Toy>(spec_, length_); }

 private:
  EnvSpec spec_;
  int64_t length_;
};

inline void RegisterToys() {
  RegisterEnvFamily("fuzz_buttons", [](const EnvOptions& given) { return std::make_unique<ToyFactory>(true, given); });
  RegisterEnvFamily("fuzz_joints", [](const EnvOptions& given) { return std::make_unique<ToyFactory>(false, given); });
}

}  // namespace neuroevo::fuzz

#endif  // NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_TOY_H_
