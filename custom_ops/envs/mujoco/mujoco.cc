// The MuJoCo family: the robot tasks of Gymnasium 1.3, version v5, with their keyword arguments as options (task.h).
// The environments of a pool share one model and have one simulation each.
//
// A frame is a physics step; an episode is truncated at the first step with max_frames frames or more, and at
// max_episode_steps in any case. Only the initial state is random, drawn by ResetNoise from the seed. Gymnasium uses a
// different generator; from the same initial state, observations, rewards and episode ends equal Gymnasium's.
//
// An unstable simulation (MuJoCo detects a number that is not finite or above 1e10, resets to the model's initial state
// and would continue) ends its episode with reward 0 for that step and the reason as its failure; so does an error in
// MuJoCo. The observation is then that of the model's initial state, which is finite. A non-finite reward ends the
// episode in the same way.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "envs/env.h"
#include "envs/episode_info.h"
#include "envs/mujoco/model.h"
#include "envs/mujoco/task.h"

namespace neuroevo {
namespace {

constexpr int64_t kMaxFrameSkip = 1000;
constexpr int64_t kMaxEpisodeSteps = 1'000'000'000;

int FindGeom(const mjModel& model, const std::string& name) {
  const int geom = mj_name2id(&model, mjOBJ_GEOM, name.c_str());
  if (geom < 0) ThrowInvalid("the MuJoCo model has no geom '", name, "', given in the option feet");
  return geom;
}

// Model and settings shared by the environments of one pool.
struct Robot {
  explicit Robot(const EnvOptions& given) {
    OptionReader options("mujoco", given);
    const MujocoTaskEntry& entry = ReadTask(&options);
    const std::string file = options.String("model", "");
    frame_skip = options.Int("frame_skip", entry.frame_skip, 1, kMaxFrameSkip);
    max_frames = frame_skip * options.Int("max_episode_steps", entry.max_episode_steps, 1, kMaxEpisodeSteps);
    if (file.empty()) ThrowInvalid("mujoco needs the option model=FILE");
    model = LoadMujocoModel(file);
    RequireMujoco(entry.name, "bodies", model->nbody, 2);
    RequireMujoco(entry.name, "actuators", model->nu, 1);
    task = entry.make({*model, model->opt.timestep * static_cast<double>(frame_skip), &options});
    contact_forces = entry.contact_forces;
    for (const std::string& name : SplitLines(options.String("feet", ""))) feet.push_back(FindGeom(*model, name));
    options.Finish();
  }

  static const MujocoTaskEntry& ReadTask(OptionReader* options) {
    const std::string name = options->String("task", "");
    std::string known;
    for (const MujocoTaskEntry& entry : MujocoTasks()) {
      if (name == entry.name) return entry;
      known += (known.empty() ? "" : ", ") + std::string(entry.name);
    }
    ThrowInvalid("mujoco option task is '", name, "', expected one of: ", known);
  }

  MujocoModel model;
  std::unique_ptr<const MujocoTask> task;
  int64_t frame_skip, max_frames;
  bool contact_forces;
  std::vector<int> feet;  // geoms whose ground contact is the behavior; if empty, the behavior is a position
};

class MujocoEnv : public Env, public EpisodeInfo {
 public:
  explicit MujocoEnv(std::shared_ptr<const Robot> robot) : robot_(std::move(robot)), data_(MakeMujocoData(model())) {}

  void Reset(uint64_t seed, int64_t max_frames) override {
    frames_ = 0;
    last_frame_ = max_frames == 0 ? robot_->max_frames : std::min(max_frames, robot_->max_frames);
    failure_.clear();
    end_ = {};
    std::fill(contacts_.begin(), contacts_.end(), 0);
    Simulate([&] {
      mj_resetData(&model(), data_.get());
      ResetNoise noise(seed);
      robot_->task->Start(&noise, data_->qpos, data_->qvel);
      mj_forward(&model(), data_.get());
    });
  }

  StepResult Step(const void* action) override {
    const auto* controls = static_cast<const float*>(action);
    double before = 0;
    frames_ += robot_->frame_skip;
    if (failure_.empty()) {
      Simulate([&] {
        before = robot_->task->Position(*data_);
        std::copy_n(controls, model().nu, data_->ctrl);
        for (int64_t i = 0; i < robot_->frame_skip; ++i) mj_step(&model(), data_.get());
        if (robot_->contact_forces) mj_rnePostConstraint(&model(), data_.get());
        CountContacts();
      });
    }
    StepResult result = {0, true};
    if (failure_.empty()) {
      result = robot_->task->Judge(*data_, before, controls);
      if (!std::isfinite(result.reward)) {  // for example the cost of an action of 1e30
        failure_ = Concat("the reward is ", result.reward, Time());
        result = {0, true};
      }
    }
    end_ = {result.done, frames_ >= last_frame_};
    result.done = end_.terminated || end_.truncated;
    return result;
  }

  End HowItEnded() const override { return end_; }

  void Observe(void* out) const override { robot_->task->Observe(*data_, static_cast<double*>(out)); }

  // Write, for each foot, the fraction of the episode's steps after which it touches the ground, or x and y of the
  // tracked body. Both are those at the start of the last physics step.
  void Behavior(void* out) const override {
    auto* numbers = static_cast<double*>(out);
    if (contacts_.empty()) {
      std::copy_n(data_->xpos + 3 * robot_->task->tracked_body(), 2, numbers);
      return;
    }
    const auto steps = static_cast<double>(std::max<int64_t>(frames_ / robot_->frame_skip, 1));
    for (const int64_t count : contacts_) *numbers++ = static_cast<double>(count) / steps;
  }

  void State(double* out) const override {
    std::copy_n(data_->qvel, model().nv, std::copy_n(data_->qpos, model().nq, out));
  }

  std::string Failure() const override { return failure_; }

 private:
  const mjModel& model() const { return *robot_->model; }

  // Count for each foot whether it touches the world body, which is the ground.
  void CountContacts() {
    for (size_t foot = 0; foot < contacts_.size(); ++foot) {
      const auto touches = [&](const mjContact& contact) {
        const int geom = robot_->feet[foot];
        if (contact.exclude != 0 || (contact.geom[0] != geom && contact.geom[1] != geom)) return false;
        return model().geom_bodyid[contact.geom[contact.geom[0] == geom ? 1 : 0]] == 0;
      };
      if (std::any_of(data_->contact, data_->contact + data_->ncon, touches)) ++contacts_[foot];
    }
  }

  // Run a part of the simulation and set failure_ if it failed.
  template <class Body>
  void Simulate(Body body) {
    const MujocoCalls calls;
    try {
      body();
      failure_ = Instability();
    } catch (const Error& error) {
      failure_ = error.what();
    }
    if (failure_.empty()) return;
    failure_ += Time();
    mj_resetData(&model(), data_.get());
  }

  std::string Time() const {
    return Concat(" (at ", static_cast<double>(frames_) * model().opt.timestep, " simulated seconds)");
  }

  std::string Instability() const {
    for (const auto& [warning, what] : {std::pair{mjWARN_BADQPOS, "position"}, std::pair{mjWARN_BADQVEL, "velocity"},
                                        std::pair{mjWARN_BADQACC, "acceleration"}}) {
      const mjWarningStat& found = data_->warning[warning];
      if (found.number > 0) return Concat("the simulation is unstable: bad ", what, " ", found.lastinfo);
    }
    // MuJoCo checks the result of a physics step only in the next step, which may not take place.
    const auto good = [](double value) { return std::abs(value) <= mjMAXVAL; };  // false for NaN
    if (std::all_of(data_->qpos, data_->qpos + model().nq, good) &&
        std::all_of(data_->qvel, data_->qvel + model().nv, good)) {
      return "";
    }
    return "the simulation is unstable: a position or velocity is not finite";
  }

  std::shared_ptr<const Robot> robot_;
  MujocoData data_;
  int64_t frames_ = 0, last_frame_ = 0;
  std::vector<int64_t> contacts_ = std::vector<int64_t>(robot_->feet.size());  // steps with contact, per foot
  End end_;
  std::string failure_;
};

// Return an actuator's name, or that of its joint, since few of Gymnasium's actuators have a name.
std::string NameOfActuator(const mjModel& model, int number) {
  const std::string own = model.names + model.name_actuatoradr[number];
  if (!own.empty() || model.actuator_trntype[number] != mjTRN_JOINT) return own;
  return model.names + model.name_jntadr[model.actuator_trnid[2 * number]];
}

class MujocoFactory : public EnvFactory {
 public:
  explicit MujocoFactory(const EnvOptions& options) : robot_(std::make_shared<const Robot>(options)) {
    const mjModel& model = *robot_->model;
    spec_.observation_dtype = DType::kFloat64;
    spec_.observation_shape = {robot_->task->size()};
    spec_.action_dtype = DType::kFloat32;
    spec_.num_actions = model.nu;
    for (int i = 0; i < model.nu; ++i) {
      spec_.action_names += (i == 0 ? "" : "\n") + NameOfActuator(model, i);
      spec_.action_low.push_back(static_cast<float>(model.actuator_ctrlrange[2 * i]));
      spec_.action_high.push_back(static_cast<float>(model.actuator_ctrlrange[2 * i + 1]));
    }
    spec_.frame_skip = robot_->frame_skip;
    spec_.behavior_dtype = DType::kFloat64;
    spec_.behavior_shape = {robot_->feet.empty() ? 2 : static_cast<int64_t>(robot_->feet.size())};
    spec_.state_size = model.nq + model.nv;
    spec_.steps_per_task = model.nv <= 5 ? 4 : 1;  // pendulums, reacher and swimmer take 5 to 10 microseconds per step
    spec_.observations_per_task = 32;
    spec_.memory = 200'000;  // that of the humanoid, the largest model
  }

  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<MujocoEnv>(robot_); }

 private:
  EnvSpec spec_;
  std::shared_ptr<const Robot> robot_;
};

const bool registered =
    RegisterEnvFamily("mujoco", [](const EnvOptions& options) { return std::make_unique<MujocoFactory>(options); });

}  // namespace
}  // namespace neuroevo
