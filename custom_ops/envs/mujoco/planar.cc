// Planar robots that move along x: HalfCheetah, Hopper, Walker2d (in the x-z plane) and Swimmer (in the x-y plane). The
// reward is the speed less the control cost; Hopper and Walker2d also get a healthy reward.
#include <cmath>

#include "envs/mujoco/task.h"

namespace neuroevo {
namespace {

// Settings in which the four robots differ.
struct PlanarDefaults {
  const char* name;
  double ctrl_cost_weight, reset_noise_scale;
  VelocityNoise velocity_noise;
  int excluded;                     // number of coordinates that are positions in the world
  int coordinates;                  // minimum number of joint coordinates of a model
  double velocity_clip = mjMAXVAL;  // observed velocities are clipped to this range
};

class Planar : public MujocoTask {
 public:
  Planar(const MujocoSetup& setup, const PlanarDefaults& defaults)
      : MujocoTask(setup),
        defaults_(defaults),
        step_seconds_(setup.step_seconds),
        forward_reward_weight_(setup.options->Double("forward_reward_weight", 1)),
        ctrl_cost_weight_(setup.options->Double("ctrl_cost_weight", defaults.ctrl_cost_weight)),
        reset_noise_scale_(ReadNoiseScale(setup.options, defaults.reset_noise_scale)),
        skipped_(setup.options->Bool("exclude_current_positions_from_observation", true) ? defaults.excluded : 0) {
    RequireMujoco(defaults.name, "joint coordinates", nq_, defaults.coordinates);
  }

  int64_t size() const override { return nq_ - skipped_ + nv_; }

  void Start(ResetNoise* noise, double* qpos, double* qvel) const override {
    AddResetNoise(noise, reset_noise_scale_, defaults_.velocity_noise, nq_, nv_, qpos, qvel);
  }

  double Position(const mjData& data) const override { return data.qpos[0]; }

  StepResult Judge(const mjData& data, double before, const float* action) const override {
    const double forward = forward_reward_weight_ * ((data.qpos[0] - before) / step_seconds_);
    return {forward - ControlCost(ctrl_cost_weight_, action, model_.nu), false};
  }

  void Observe(const mjData& data, double* out) const override {
    ObservationWriter writer(out);
    writer.Add(data.qpos + skipped_, nq_ - skipped_);
    writer.AddClipped(data.qvel, nv_, -defaults_.velocity_clip, defaults_.velocity_clip);
  }

 protected:
  const PlanarDefaults defaults_;
  const double step_seconds_, forward_reward_weight_, ctrl_cost_weight_, reset_noise_scale_;
  const int skipped_;
};

// Hopper and Walker2d: healthy reward, and termination when unhealthy.
class PlanarWalker : public Planar {
 public:
  PlanarWalker(const MujocoSetup& setup, const PlanarDefaults& defaults, OptionReader::Range z,
               OptionReader::Range angle)
      : Planar(setup, defaults),
        healthy_reward_(setup.options->Double("healthy_reward", 1)),
        terminate_when_unhealthy_(setup.options->Bool("terminate_when_unhealthy", true)),
        healthy_z_range_(setup.options->ReadRange("healthy_z_range", z)),
        healthy_angle_range_(setup.options->ReadRange("healthy_angle_range", angle)) {}

  StepResult Judge(const mjData& data, double before, const float* action) const override {
    const double forward = forward_reward_weight_ * ((data.qpos[0] - before) / step_seconds_);
    const bool healthy = Healthy(data);
    const double rewards = forward + (healthy ? healthy_reward_ : 0);
    return {rewards - ControlCost(ctrl_cost_weight_, action, model_.nu), !healthy && terminate_when_unhealthy_};
  }

 protected:
  virtual bool Healthy(const mjData& data) const {
    return healthy_z_range_.Inside(data.qpos[1]) && healthy_angle_range_.Inside(data.qpos[2]);
  }

 private:
  const double healthy_reward_;
  const bool terminate_when_unhealthy_;
  const OptionReader::Range healthy_z_range_, healthy_angle_range_;
};

class Hopper : public PlanarWalker {
 public:
  explicit Hopper(const MujocoSetup& setup)
      : PlanarWalker(setup, {"Hopper", 1e-3, 5e-3, VelocityNoise::kUniform, 1, 3, 10}, {0.7, INFINITY}, {-0.2, 0.2}),
        healthy_state_range_(setup.options->ReadRange("healthy_state_range", {-100, 100})) {}

 private:
  bool Healthy(const mjData& data) const override {
    const auto inside = [this](double value) { return healthy_state_range_.Inside(value); };
    return PlanarWalker::Healthy(data) && std::all_of(data.qpos + 2, data.qpos + nq_, inside) &&
           std::all_of(data.qvel, data.qvel + nv_, inside);
  }

  const OptionReader::Range healthy_state_range_;
};

}  // namespace

std::unique_ptr<MujocoTask> MakeHalfCheetah(const MujocoSetup& setup) {
  return std::make_unique<Planar>(setup, PlanarDefaults{"HalfCheetah", 0.1, 0.1, VelocityNoise::kNormal, 1, 1});
}

std::unique_ptr<MujocoTask> MakeSwimmer(const MujocoSetup& setup) {
  return std::make_unique<Planar>(setup, PlanarDefaults{"Swimmer", 1e-4, 0.1, VelocityNoise::kUniform, 2, 2});
}

std::unique_ptr<MujocoTask> MakeHopper(const MujocoSetup& setup) { return std::make_unique<Hopper>(setup); }

std::unique_ptr<MujocoTask> MakeWalker2d(const MujocoSetup& setup) {
  return std::make_unique<PlanarWalker>(setup,
                                        PlanarDefaults{"Walker2d", 1e-3, 5e-3, VelocityNoise::kUniform, 1, 3, 10},
                                        OptionReader::Range{0.8, 2}, OptionReader::Range{-1, 1});
}

}  // namespace neuroevo
