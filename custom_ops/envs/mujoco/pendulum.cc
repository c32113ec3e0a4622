// InvertedPendulum and InvertedDoublePendulum: a cart that balances one pole, or two poles on top of each other.
#include <cmath>

#include "envs/mujoco/task.h"

namespace neuroevo {
namespace {

class InvertedPendulum : public MujocoTask {
 public:
  explicit InvertedPendulum(const MujocoSetup& setup)
      : MujocoTask(setup), reset_noise_scale_(ReadNoiseScale(setup.options, 0.01)) {
    RequireMujoco("InvertedPendulum", "joint coordinates", nq_, 2);
  }

  int64_t size() const override { return nq_ + nv_; }

  void Start(ResetNoise* noise, double* qpos, double* qvel) const override {
    AddResetNoise(noise, reset_noise_scale_, VelocityNoise::kUniform, nq_, nv_, qpos, qvel);
  }

  StepResult Judge(const mjData& data, double, const float*) const override {
    const auto finite = [](double value) { return std::isfinite(value); };
    const bool upright = std::abs(data.qpos[1]) <= 0.2 && std::all_of(data.qpos, data.qpos + nq_, finite) &&
                         std::all_of(data.qvel, data.qvel + nv_, finite);
    return {upright ? 1.0 : 0.0, !upright};
  }

  void Observe(const mjData& data, double* out) const override {
    ObservationWriter writer(out);
    writer.Add(data.qpos, nq_);
    writer.Add(data.qvel, nv_);
  }

 private:
  const double reset_noise_scale_;
};

class InvertedDoublePendulum : public MujocoTask {
 public:
  explicit InvertedDoublePendulum(const MujocoSetup& setup)
      : MujocoTask(setup),
        healthy_reward_(setup.options->Double("healthy_reward", 10)),
        reset_noise_scale_(ReadNoiseScale(setup.options, 0.1)) {
    RequireMujoco("InvertedDoublePendulum", "degrees of freedom", nv_, 3);
    RequireMujoco("InvertedDoublePendulum", "sites", model_.nsite, 1);
  }

  int64_t size() const override { return 1 + 2 * (nq_ - 1) + nv_ + 1; }

  void Start(ResetNoise* noise, double* qpos, double* qvel) const override {
    AddResetNoise(noise, reset_noise_scale_, VelocityNoise::kNormal, nq_, nv_, qpos, qvel);
  }

  // The site is the tip of the upper pole.
  StepResult Judge(const mjData& data, double, const float*) const override {
    const double x = data.site_xpos[0], y = data.site_xpos[2], v1 = data.qvel[1], v2 = data.qvel[2];
    const bool fallen = y <= 1;
    const double distance = 0.01 * (x * x) + (y - 2) * (y - 2);
    const double velocity = 1e-3 * (v1 * v1) + 5e-3 * (v2 * v2);
    return {(fallen ? 0 : healthy_reward_) - distance - velocity, fallen};
  }

  void Observe(const mjData& data, double* out) const override {
    ObservationWriter writer(out);
    writer.Add(data.qpos[0]);
    for (int i = 1; i < nq_; ++i) writer.Add(std::sin(data.qpos[i]));
    for (int i = 1; i < nq_; ++i) writer.Add(std::cos(data.qpos[i]));
    writer.AddClipped(data.qvel, nv_, -10, 10);
    writer.AddClipped(data.qfrc_constraint, 1, -10, 10);
  }

 private:
  const double healthy_reward_, reset_noise_scale_;
};

}  // namespace

std::unique_ptr<MujocoTask> MakeInvertedPendulum(const MujocoSetup& setup) {
  return std::make_unique<InvertedPendulum>(setup);
}

std::unique_ptr<MujocoTask> MakeInvertedDoublePendulum(const MujocoSetup& setup) {
  return std::make_unique<InvertedDoublePendulum>(setup);
}

}  // namespace neuroevo
