// Humanoid, rewarded for walking along x and for being healthy, and HumanoidStandup, for the height of its torso; both
// less the costs of control and of impacts.
#include "envs/mujoco/task.h"

namespace neuroevo {
namespace {

constexpr int kInertia = 10, kSpatial = 6;  // numbers per body in cinert, and in cvel and cfrc_ext
constexpr int kRootDofs = 6;                // the unactuated position and rotation of the torso, which come first

// Base class of both tasks: observation, initial state, and two costs.
class HumanoidBody : public MujocoTask {
 public:
  // weight, range: names of the contact cost's options, which differ between the tasks.
  HumanoidBody(const MujocoSetup& setup, const char* name, const char* weight, const char* range)
      : MujocoTask(setup),
        ctrl_cost_weight_(setup.options->Double("ctrl_cost_weight", 0.1)),
        contact_cost_weight_(setup.options->Double(weight, 5e-7)),
        contact_cost_range_(setup.options->ReadRange(range, {-INFINITY, 10})),
        reset_noise_scale_(ReadNoiseScale(setup.options, 1e-2)),
        skipped_(setup.options->Bool("exclude_current_positions_from_observation", true) ? 2 : 0),
        include_cinert_(setup.options->Bool("include_cinert_in_observation", true)),
        include_cvel_(setup.options->Bool("include_cvel_in_observation", true)),
        include_qfrc_actuator_(setup.options->Bool("include_qfrc_actuator_in_observation", true)),
        include_cfrc_ext_(setup.options->Bool("include_cfrc_ext_in_observation", true)) {
    RequireMujoco(name, "joint coordinates", nq_, 3);
    RequireMujoco(name, "degrees of freedom", nv_, kRootDofs);
  }

  int64_t size() const override {
    const int64_t bodies = model_.nbody - 1;  // without the world
    return nq_ - skipped_ + nv_ + (include_cinert_ ? kInertia * bodies : 0) + (include_cvel_ ? kSpatial * bodies : 0) +
           (include_qfrc_actuator_ ? nv_ - kRootDofs : 0) + (include_cfrc_ext_ ? kSpatial * bodies : 0);
  }

  void Start(ResetNoise* noise, double* qpos, double* qvel) const override {
    AddResetNoise(noise, reset_noise_scale_, VelocityNoise::kUniform, nq_, nv_, qpos, qvel);
  }

  void Observe(const mjData& data, double* out) const override {
    const int64_t bodies = model_.nbody - 1;
    ObservationWriter writer(out);
    writer.Add(data.qpos + skipped_, nq_ - skipped_);
    writer.Add(data.qvel, nv_);
    if (include_cinert_) writer.Add(data.cinert + kInertia, kInertia * bodies);
    if (include_cvel_) writer.Add(data.cvel + kSpatial, kSpatial * bodies);
    if (include_qfrc_actuator_) writer.Add(data.qfrc_actuator + kRootDofs, nv_ - kRootDofs);
    if (include_cfrc_ext_) writer.Add(data.cfrc_ext + kSpatial, kSpatial * bodies);
  }

 protected:
  double ControlCostOfData(const mjData& data) const { return ctrl_cost_weight_ * SumOfSquares(data.ctrl, model_.nu); }
  double ContactCost(const mjData& data) const {
    const double cost = contact_cost_weight_ * SumOfSquares(data.cfrc_ext, kSpatial * model_.nbody);
    return ObservationWriter::Clip(cost, contact_cost_range_.low, contact_cost_range_.high);
  }

 private:
  const double ctrl_cost_weight_, contact_cost_weight_;
  const OptionReader::Range contact_cost_range_;
  const double reset_noise_scale_;
  const int skipped_;
  const bool include_cinert_, include_cvel_, include_qfrc_actuator_, include_cfrc_ext_;
};

class Humanoid : public HumanoidBody {
 public:
  explicit Humanoid(const MujocoSetup& setup)
      : HumanoidBody(setup, "Humanoid", "contact_cost_weight", "contact_cost_range"),
        step_seconds_(setup.step_seconds),
        forward_reward_weight_(setup.options->Double("forward_reward_weight", 1.25)),
        healthy_reward_(setup.options->Double("healthy_reward", 5)),
        terminate_when_unhealthy_(setup.options->Bool("terminate_when_unhealthy", true)),
        healthy_z_range_(setup.options->ReadRange("healthy_z_range", {1, 2})) {
    for (int body = 0; body < model_.nbody; ++body) mass_ += model_.body_mass[body];
  }

  // The center of mass.
  double Position(const mjData& data) const override {
    double sum = 0;
    for (int body = 0; body < model_.nbody; ++body) sum += model_.body_mass[body] * data.xipos[3 * body];
    return sum / mass_;
  }

  StepResult Judge(const mjData& data, double before, const float*) const override {
    const bool healthy = healthy_z_range_.Inside(data.qpos[2]);
    const double forward = forward_reward_weight_ * ((Position(data) - before) / step_seconds_);
    const double costs = ControlCostOfData(data) + ContactCost(data);
    return {forward + (healthy ? healthy_reward_ : 0) - costs, !healthy && terminate_when_unhealthy_};
  }

 private:
  const double step_seconds_, forward_reward_weight_, healthy_reward_;
  const bool terminate_when_unhealthy_;
  const OptionReader::Range healthy_z_range_;
  double mass_ = 0;
};

class HumanoidStandup : public HumanoidBody {
 public:
  // uph_cost_weight is a keyword argument of Gymnasium's task that has no effect there, nor here.
  explicit HumanoidStandup(const MujocoSetup& setup)
      : HumanoidBody(setup, "HumanoidStandup", "impact_cost_weight", "impact_cost_range") {
    setup.options->Double("uph_cost_weight", 1);
  }

  StepResult Judge(const mjData& data, double, const float*) const override {
    const double height = data.qpos[2] / model_.opt.timestep;
    return {height - ControlCostOfData(data) - ContactCost(data) + 1, false};
  }
};

}  // namespace

std::unique_ptr<MujocoTask> MakeHumanoid(const MujocoSetup& setup) { return std::make_unique<Humanoid>(setup); }

std::unique_ptr<MujocoTask> MakeHumanoidStandup(const MujocoSetup& setup) {
  return std::make_unique<HumanoidStandup>(setup);
}

}  // namespace neuroevo
