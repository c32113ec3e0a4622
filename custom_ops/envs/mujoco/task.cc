#include "envs/mujoco/task.h"

#include "core/error.h"

namespace neuroevo {

const std::vector<MujocoTaskEntry>& MujocoTasks() {
  static const std::vector<MujocoTaskEntry> tasks = {
      {"Ant", 5, 1000, true, MakeAnt},
      {"HalfCheetah", 5, 1000, false, MakeHalfCheetah},
      {"Hopper", 4, 1000, false, MakeHopper},
      {"Humanoid", 5, 1000, true, MakeHumanoid},
      {"HumanoidStandup", 5, 1000, true, MakeHumanoidStandup},
      {"InvertedDoublePendulum", 5, 1000, false, MakeInvertedDoublePendulum},
      {"InvertedPendulum", 2, 1000, false, MakeInvertedPendulum},
      {"Pusher", 5, 100, false, MakePusher},
      {"Reacher", 2, 50, false, MakeReacher},
      {"Swimmer", 4, 1000, false, MakeSwimmer},
      {"Walker2d", 4, 1000, false, MakeWalker2d},
  };
  return tasks;
}

void RequireMujoco(const char* task, const char* what, int64_t has, int64_t needs) {
  if (has < needs) ThrowInvalid("the MuJoCo model has ", has, " ", what, ", ", task, " needs at least ", needs);
}

double ReadNoiseScale(OptionReader* options, double fallback) {
  return options->Double("reset_noise_scale", fallback, 0, 1e6);
}

void AddResetNoise(ResetNoise* noise, double scale, VelocityNoise velocity, int nq, int nv, double* qpos,
                   double* qvel) {
  for (int i = 0; i < nq; ++i) qpos[i] += noise->Uniform(-scale, scale);
  for (int i = 0; i < nv; ++i) {
    qvel[i] += velocity == VelocityNoise::kNormal ? scale * noise->Normal() : noise->Uniform(-scale, scale);
  }
}

float ControlCost(double weight, const float* action, int64_t n) {
  float sum = 0;
  int64_t i = 0;
  if (n >= 8) {
    float part[8];
    for (; i < 8; ++i) part[i] = action[i] * action[i];
    for (; i + 8 <= n; i += 8) {
      for (int j = 0; j < 8; ++j) part[j] += action[i + j] * action[i + j];
    }
    sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }
  for (; i < n; ++i) sum += action[i] * action[i];
  return static_cast<float>(weight) * sum;
}

double SumOfSquares(const double* values, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += values[i] * values[i];
  return sum;
}

}  // namespace neuroevo
