// Task-specific part of MuJoCo environments: initial state, reward, termination and observation; mujoco.cc has the
// shared stepping. The tasks are those of Gymnasium 1.3, version v5, with their keyword arguments as options. The
// helpers here are shared by several tasks.
#ifndef NEUROEVO_ENVS_MUJOCO_TASK_H_
#define NEUROEVO_ENVS_MUJOCO_TASK_H_

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/noise.h"
#include "envs/env.h"

namespace neuroevo {

// Random numbers of a reset: draw i is computed from the four Philox words of counter i under the episode's seed. The
// first two words give a 53-bit uniform number, the others a normal number, as in core/noise.h.
class ResetNoise {
 public:
  explicit ResetNoise(uint64_t seed) : seed_(seed) {}
  double Uniform(double low, double high) {
    const Philox philox = PhiloxWords(seed_, draws_++);
    const uint64_t bits = static_cast<uint64_t>(philox.word[0]) << 32 | philox.word[1];
    return low + (high - low) * (static_cast<double>(bits >> 11) * 0x1p-53);
  }
  double Normal() { return NormalsAt(seed_, draws_++).value[2]; }

 private:
  uint64_t seed_, draws_ = 0;
};

// Arguments of a task's constructor.
struct MujocoSetup {
  const mjModel& model;
  double step_seconds;    // simulated time of one step
  OptionReader* options;  // the task reads its own options
};

class MujocoTask {
 public:
  explicit MujocoTask(const MujocoSetup& setup)
      : model_(setup.model), nq_(static_cast<int>(model_.nq)), nv_(static_cast<int>(model_.nv)) {}
  virtual ~MujocoTask() = default;

  // Number of values per observation.
  virtual int64_t size() const = 0;

  // Change qpos [nq] and qvel [nv] from the model's initial state to the initial state of an episode.
  virtual void Start(ResetNoise* noise, double* qpos, double* qvel) const = 0;

  // Return the robot's position for the reward; called before and after a step.
  virtual double Position(const mjData&) const { return 0; }

  // Return the reward and end of a step. action: [nu].
  virtual StepResult Judge(const mjData& data, double position_before, const float* action) const = 0;

  // Write the observation, size() numbers.
  virtual void Observe(const mjData& data, double* out) const = 0;

  // Body whose position is the behavior; by default the first after the world, a robot's torso or cart.
  virtual int tracked_body() const { return 1; }

 protected:
  const mjModel& model_;
  const int nq_, nv_;
};

// Entry of the table of tasks.
struct MujocoTaskEntry {
  const char* name;
  int64_t frame_skip;         // physics steps per step
  int64_t max_episode_steps;  // Gymnasium's TimeLimit
  bool contact_forces;        // whether data.cfrc_ext is used, which needs mj_rnePostConstraint after a step
  std::unique_ptr<MujocoTask> (*make)(const MujocoSetup& setup);
};

const std::vector<MujocoTaskEntry>& MujocoTasks();

std::unique_ptr<MujocoTask> MakeHalfCheetah(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakeHopper(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakeWalker2d(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakeSwimmer(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakeAnt(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakeHumanoid(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakeHumanoidStandup(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakeInvertedPendulum(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakeInvertedDoublePendulum(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakeReacher(const MujocoSetup& setup);
std::unique_ptr<MujocoTask> MakePusher(const MujocoSetup& setup);

// Throw if the model has too few of something: "the MuJoCo model has 1 joint coordinates, Ant needs at least 3".
void RequireMujoco(const char* task, const char* what, int64_t has, int64_t needs);

// Read the option reset_noise_scale.
double ReadNoiseScale(OptionReader* options, double fallback);

enum class VelocityNoise { kUniform, kNormal };

// Add uniform noise in [-scale, scale) to qpos, and to qvel either uniform noise or normal noise with that std.
void AddResetNoise(ResetNoise* noise, double scale, VelocityNoise velocity, int nq, int nv, double* qpos, double* qvel);

// Return weight times the sum of squares, in float32 and in NumPy's summation order for eight and more numbers, so that
// the result is bit-identical to Gymnasium's for float32 actions.
float ControlCost(double weight, const float* action, int64_t n);

double SumOfSquares(const double* values, int64_t n);

// Writer that appends numbers to an observation.
class ObservationWriter {
 public:
  explicit ObservationWriter(double* out) : out_(out) {}
  void Add(double value) { *out_++ = value; }
  void Add(const double* values, int64_t n) { out_ = std::copy_n(values, n, out_); }
  void AddClipped(const double* values, int64_t n, double low, double high) {
    for (int64_t i = 0; i < n; ++i) *out_++ = Clip(values[i], low, high);
  }
  static double Clip(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

 private:
  double* out_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_MUJOCO_TASK_H_
