// Reacher, whose fingertip moves to a target, and Pusher, whose arm pushes an object to a goal. Neither terminates.
#include <cmath>

#include "envs/mujoco/model.h"
#include "envs/mujoco/task.h"

namespace neuroevo {
namespace {

struct Difference {
  double x, y, z;
  double Length() const { return std::sqrt(x * x + y * y + z * z); }
};

// Return the vector from body b to body a.
Difference Between(const mjData& data, int a, int b) {
  const double *at = data.xpos + 3 * a, *from = data.xpos + 3 * b;
  return {at[0] - from[0], at[1] - from[1], at[2] - from[2]};
}

class Reacher : public MujocoTask {
 public:
  explicit Reacher(const MujocoSetup& setup)
      : MujocoTask(setup),
        dist_weight_(setup.options->Double("reward_dist_weight", 1)),
        control_weight_(setup.options->Double("reward_control_weight", 1)),
        fingertip_(MujocoBody(model_, "fingertip")),
        target_(MujocoBody(model_, "target")) {
    RequireMujoco("Reacher", "joint coordinates", nq_, 4);
    RequireMujoco("Reacher", "degrees of freedom", nv_, 4);
  }

  int64_t size() const override { return 2 + 2 + (nq_ - 2) + 2 + 2; }

  // The target is uniformly distributed in a disc of radius 0.2.
  void Start(ResetNoise* noise, double* qpos, double* qvel) const override {
    for (int i = 0; i < nq_; ++i) qpos[i] += noise->Uniform(-0.1, 0.1);
    double x, y;
    do {
      x = noise->Uniform(-0.2, 0.2);
      y = noise->Uniform(-0.2, 0.2);
    } while (std::sqrt(x * x + y * y) >= 0.2);
    qpos[nq_ - 2] = x;
    qpos[nq_ - 1] = y;
    for (int i = 0; i < nv_; ++i) qvel[i] += noise->Uniform(-0.005, 0.005);
    qvel[nv_ - 2] = qvel[nv_ - 1] = 0;
  }

  StepResult Judge(const mjData& data, double, const float* action) const override {
    const double distance = -Between(data, fingertip_, target_).Length() * dist_weight_;
    return {distance - ControlCost(control_weight_, action, model_.nu), false};
  }

  void Observe(const mjData& data, double* out) const override {
    ObservationWriter writer(out);
    for (int i = 0; i < 2; ++i) writer.Add(std::cos(data.qpos[i]));
    for (int i = 0; i < 2; ++i) writer.Add(std::sin(data.qpos[i]));
    writer.Add(data.qpos + 2, nq_ - 2);
    writer.Add(data.qvel, 2);
    const Difference difference = Between(data, fingertip_, target_);
    writer.Add(difference.x);
    writer.Add(difference.y);
  }

  int tracked_body() const override { return fingertip_; }

 private:
  const double dist_weight_, control_weight_;
  const int fingertip_, target_;
};

class Pusher : public MujocoTask {
 public:
  explicit Pusher(const MujocoSetup& setup)
      : MujocoTask(setup),
        near_weight_(setup.options->Double("reward_near_weight", 0.5)),
        dist_weight_(setup.options->Double("reward_dist_weight", 1)),
        control_weight_(setup.options->Double("reward_control_weight", 0.1)),
        tip_(MujocoBody(model_, "tips_arm")),
        object_(MujocoBody(model_, "object")),
        goal_(MujocoBody(model_, "goal")) {
    RequireMujoco("Pusher", "joint coordinates", nq_, kArm + 4);
    RequireMujoco("Pusher", "degrees of freedom", nv_, kArm + 4);
  }

  int64_t size() const override { return 2 * kArm + 3 * 3; }

  // The object is uniformly distributed in a rectangle, at least 0.17 from the goal.
  void Start(ResetNoise* noise, double* qpos, double* qvel) const override {
    double x, y;
    do {
      x = noise->Uniform(-0.3, 0);
      y = noise->Uniform(-0.2, 0.2);
    } while (std::sqrt(x * x + y * y) <= 0.17);
    const double places[] = {x, y, 0, 0};
    std::copy_n(places, 4, qpos + nq_ - 4);
    for (int i = 0; i < nv_; ++i) qvel[i] += noise->Uniform(-0.005, 0.005);
    std::fill_n(qvel + nv_ - 4, 4, 0.0);
  }

  StepResult Judge(const mjData& data, double, const float* action) const override {
    const double near = -Between(data, object_, tip_).Length() * near_weight_;
    const double distance = -Between(data, object_, goal_).Length() * dist_weight_;
    return {distance - ControlCost(control_weight_, action, model_.nu) + near, false};
  }

  void Observe(const mjData& data, double* out) const override {
    ObservationWriter writer(out);
    writer.Add(data.qpos, kArm);
    writer.Add(data.qvel, kArm);
    for (int body : {tip_, object_, goal_}) writer.Add(data.xpos + 3 * body, 3);
  }

  int tracked_body() const override { return object_; }

 private:
  static constexpr int kArm = 7;  // joints

  const double near_weight_, dist_weight_, control_weight_;
  const int tip_, object_, goal_;
};

}  // namespace

std::unique_ptr<MujocoTask> MakeReacher(const MujocoSetup& setup) { return std::make_unique<Reacher>(setup); }
std::unique_ptr<MujocoTask> MakePusher(const MujocoSetup& setup) { return std::make_unique<Pusher>(setup); }

}  // namespace neuroevo
