// What a task adds to the stepping that all MuJoCo environments share (mujoco.cc): its start, its reward, its end, and
// what it observes. The tasks are those of Gymnasium 1.3, version v5, with their keywords as options; the helpers here
// are what several of them need.
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

// The random numbers of a reset: draw i is made of the four words of Philox's counter i under the episode's seed. The
// first two make a uniform number of 53 bits, the others a normal one, as in core/noise.h.
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

// What a task is made from.
struct MujocoSetup {
  const mjModel& model;
  double step_seconds;    // simulated time of one step
  OptionReader* options;  // the task reads its own
};

class MujocoTask {
 public:
  explicit MujocoTask(const MujocoSetup& setup)
      : model_(setup.model), nq_(static_cast<int>(model_.nq)), nv_(static_cast<int>(model_.nv)) {}
  virtual ~MujocoTask() = default;

  // Of one observation.
  virtual int64_t size() const = 0;

  // Changes qpos [nq] and qvel [nv] from the model's initial state to that of an episode.
  virtual void Start(ResetNoise* noise, double* qpos, double* qvel) const = 0;

  // Where the reward says that the robot is; asked before and after a step.
  virtual double Position(const mjData&) const { return 0; }

  // Reward and end of a step. action: [nu].
  virtual StepResult Judge(const mjData& data, double position_before, const float* action) const = 0;

  // Writes size() numbers.
  virtual void Observe(const mjData& data, double* out) const = 0;

  // The body whose place is the behavior: by default the first after the world, a robot's torso or cart.
  virtual int tracked_body() const { return 1; }

 protected:
  const mjModel& model_;
  const int nq_, nv_;
};

// A task's entry in the table.
struct MujocoTaskEntry {
  const char* name;
  int64_t frame_skip;         // physics steps per step
  int64_t max_episode_steps;  // Gymnasium's TimeLimit
  bool contact_forces;        // needs mj_rnePostConstraint after a step, for data.cfrc_ext
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

// Throws unless the model has at least that many of something: "the MuJoCo model has 1 joint coordinates, ...".
void RequireMujoco(const char* task, const char* what, int64_t has, int64_t needs);

// The option reset_noise_scale.
double ReadNoiseScale(OptionReader* options, double fallback);

enum class VelocityNoise { kUniform, kNormal };

// Adds uniform noise in [-scale, scale) to qpos, and to qvel that or normal noise of standard deviation `scale`.
void AddResetNoise(ResetNoise* noise, double scale, VelocityNoise velocity, int nq, int nv, double* qpos, double* qvel);

// The sum of squares times weight, in float32 as Gymnasium computes it from a float32 action: eight squares and more in
// NumPy's order, so that it is the same number.
float ControlCost(double weight, const float* action, int64_t n);

double SumOfSquares(const double* values, int64_t n);

// Appends numbers to an observation.
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
