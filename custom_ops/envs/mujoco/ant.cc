// Ant: four legs, rewarded for speed along x and for being healthy, less the costs of control and of contact.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "envs/mujoco/model.h"
#include "envs/mujoco/task.h"

namespace neuroevo {
namespace {

constexpr int kForce = 6;  // numbers per body: torque and force

// Return the index of a body given by its index or name.
int ReadBody(const mjModel& model, const std::string& text) {
  int body = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, body);
  if (error != std::errc() || stop != end) return MujocoBody(model, text);
  CheckIndex("mujoco option main_body", body, model.nbody);
  return body;
}

class Ant : public MujocoTask {
 public:
  explicit Ant(const MujocoSetup& setup)
      : MujocoTask(setup),
        step_seconds_(setup.step_seconds),
        forward_reward_weight_(setup.options->Double("forward_reward_weight", 1)),
        ctrl_cost_weight_(setup.options->Double("ctrl_cost_weight", 0.5)),
        contact_cost_weight_(setup.options->Double("contact_cost_weight", 5e-4)),
        healthy_reward_(setup.options->Double("healthy_reward", 1)),
        main_body_(ReadBody(model_, setup.options->String("main_body", "1"))),
        terminate_when_unhealthy_(setup.options->Bool("terminate_when_unhealthy", true)),
        healthy_z_range_(setup.options->ReadRange("healthy_z_range", {0.2, 1})),
        contact_force_range_(setup.options->ReadRange("contact_force_range", {-1, 1})),
        reset_noise_scale_(ReadNoiseScale(setup.options, 0.1)),
        skipped_(setup.options->Bool("exclude_current_positions_from_observation", true) ? 2 : 0),
        include_forces_(setup.options->Bool("include_cfrc_ext_in_observation", true)) {
    RequireMujoco("Ant", "joint coordinates", nq_, 3);
  }

  int64_t size() const override { return nq_ - skipped_ + nv_ + (include_forces_ ? kForce * (model_.nbody - 1) : 0); }

  void Start(ResetNoise* noise, double* qpos, double* qvel) const override {
    AddResetNoise(noise, reset_noise_scale_, VelocityNoise::kNormal, nq_, nv_, qpos, qvel);
  }

  double Position(const mjData& data) const override { return data.xpos[3 * main_body_]; }

  StepResult Judge(const mjData& data, double before, const float* action) const override {
    const bool healthy = Healthy(data);
    const double forward = (Position(data) - before) / step_seconds_ * forward_reward_weight_;
    const double costs = ControlCost(ctrl_cost_weight_, action, model_.nu) + ContactCost(data);
    return {forward + (healthy ? healthy_reward_ : 0) - costs, !healthy && terminate_when_unhealthy_};
  }

  void Observe(const mjData& data, double* out) const override {
    ObservationWriter writer(out);
    writer.Add(data.qpos + skipped_, nq_ - skipped_);
    writer.Add(data.qvel, nv_);
    if (include_forces_) {  // of all bodies except the world
      writer.AddClipped(data.cfrc_ext + kForce, kForce * (model_.nbody - 1), contact_force_range_.low,
                        contact_force_range_.high);
    }
  }

  int tracked_body() const override { return main_body_; }

 private:
  bool Healthy(const mjData& data) const {
    const auto finite = [](double value) { return std::isfinite(value); };
    return healthy_z_range_.low <= data.qpos[2] && data.qpos[2] <= healthy_z_range_.high &&
           std::all_of(data.qpos, data.qpos + nq_, finite) && std::all_of(data.qvel, data.qvel + nv_, finite);
  }

  double ContactCost(const mjData& data) const {
    double sum = 0;
    for (int64_t i = 0; i < kForce * model_.nbody; ++i) {
      const double force =
          ObservationWriter::Clip(data.cfrc_ext[i], contact_force_range_.low, contact_force_range_.high);
      sum += force * force;
    }
    return contact_cost_weight_ * sum;
  }

  const double step_seconds_, forward_reward_weight_, ctrl_cost_weight_, contact_cost_weight_, healthy_reward_;
  const int main_body_;
  const bool terminate_when_unhealthy_;
  const OptionReader::Range healthy_z_range_, contact_force_range_;
  const double reset_noise_scale_;
  const int skipped_;
  const bool include_forces_;
};

}  // namespace

std::unique_ptr<MujocoTask> MakeAnt(const MujocoSetup& setup) { return std::make_unique<Ant>(setup); }

}  // namespace neuroevo
