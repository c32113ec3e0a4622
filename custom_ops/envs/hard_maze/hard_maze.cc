// The hard maze of Lehman and Stanley, "Abandoning Objectives: Evolution through the Search for Novelty Alone" (2011):
// a robot must find the goal of a maze in which the direct way leads into a dead end.
//
// A step is a frame. The reward is 0, except for minus the distance to the goal in the last step (the paper's fitness
// less a constant), and the behavior is the robot's position. An episode is truncated after max_frames or
// max_episode_steps.
//   protocol=lehman   the paper: actions change speeds, and coming within 5 units of the goal ends the episode
//   protocol=uber     the code of arXiv 1712.06567: actions are target speeds, and only the time limit ends the episode
// Actions are clipped to [-1, 1], which corresponds to 0 to 1 in the paper's code and -0.5 to 0.5 in the other code.
// Episodes are deterministic and do not depend on the seed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "envs/env.h"
#include "envs/episode_info.h"
#include "envs/hard_maze/map.h"
#include "envs/hard_maze/picture.h"
#include "envs/hard_maze/robot.h"
#include "envs/state_key.h"

namespace neuroevo {
namespace {

constexpr int64_t kMaxEpisodeSteps = 100'000;  // limits the memory of an environment's path

// Settings and constant data shared by the environments of one pool.
struct Maze {
  explicit Maze(const EnvOptions& given) {
    OptionReader options("hard_maze", given);
    const std::string file = options.String("map", "");
    uber = options.OneOf("protocol", {"lehman", "uber"}) == "uber";
    image = options.OneOf("observation", {"sensors", "image"}) == "image";
    max_steps = options.Int("max_episode_steps", 400, 1, kMaxEpisodeSteps);
    options.Finish();
    if (file.empty()) ThrowInvalid("hard_maze needs the option map=FILE");
    map = ReadMazeMap(file);
    walls = std::make_unique<const MazeWalls>(map.walls);
    const double distance = std::sqrt(walls->SquaredDistance(map.start_x, map.start_y));
    if (distance < kRobotRadius) {
      ThrowInvalid("the start of maze ", file, " is ", distance, " from a wall, expected at least ", kRobotRadius,
                   ", the robot's radius");
    }
    screen = std::make_unique<const MazeScreen>(map, *walls);
    if (image) frames = std::make_unique<const MazeFrames>(map, *walls);
  }

  MazeMap map;
  bool uber, image;
  int64_t max_steps;
  std::unique_ptr<const MazeWalls> walls;
  std::unique_ptr<const MazeScreen> screen;
  std::unique_ptr<const MazeFrames> frames;  // only for image observations
};

class HardMazeEnv : public Env, public EpisodeInfo {
 public:
  explicit HardMazeEnv(std::shared_ptr<const Maze> maze) : maze_(std::move(maze)) {}

  void Reset(uint64_t, int64_t max_frames) override {
    last_step_ = max_frames == 0 ? maze_->max_steps : std::min(max_frames, maze_->max_steps);
    robot_ = {maze_->map.start_x, maze_->map.start_y, maze_->map.heading, 0, 0};
    path_.assign(1, {robot_.x, robot_.y, robot_.heading});
    end_ = {};
  }

  StepResult Step(const void* action) override {
    const auto* numbers = static_cast<const float*>(action);
    const double turn = std::clamp(numbers[0], -1.0f, 1.0f), speed = std::clamp(numbers[1], -1.0f, 1.0f);
    maze_->uber ? ApproachSpeeds(turn, speed, &robot_) : ChangeSpeeds(turn, speed, &robot_);
    Move(*maze_->walls, &robot_);
    path_.push_back({robot_.x, robot_.y, robot_.heading});

    const double x = maze_->map.goal_x - robot_.x, y = maze_->map.goal_y - robot_.y;
    const double distance = std::sqrt(x * x + y * y);
    end_.terminated = distance < kGoalRadius && !maze_->uber;
    end_.truncated = static_cast<int64_t>(path_.size()) > last_step_;
    const bool done = end_.terminated || end_.truncated;
    return {done ? -distance : 0, done};
  }

  std::optional<StateKey> Key() const override {
    Hash128 hash;
    hash.Add(path_.data(), path_.size() * sizeof(MazePose));
    hash.Add(&robot_.speed, sizeof(robot_.speed));
    hash.Add(&robot_.turn, sizeof(robot_.turn));
    return StateKey{hash.value(), last_step_ + 1 - static_cast<int64_t>(path_.size())};
  }

  End HowItEnded() const override { return end_; }

  void Observe(void* out) const override {
    if (maze_->image) {
      maze_->frames->Draw(path_, static_cast<uint8_t*>(out));
      return;
    }
    const auto sensors = Sense(*maze_->walls, robot_, maze_->map.goal_x, maze_->map.goal_y);
    std::copy(sensors.begin(), sensors.end(), static_cast<float*>(out));
  }

  void Behavior(void* out) const override {
    auto* place = static_cast<double*>(out);
    place[0] = robot_.x, place[1] = robot_.y;
  }

  void State(double* out) const override {
    const double state[] = {robot_.x, robot_.y, robot_.heading, robot_.speed, robot_.turn};
    std::copy(std::begin(state), std::end(state), out);
  }

  void Render(uint8_t* rgb) const override { maze_->screen->Draw(path_, rgb); }

 private:
  std::shared_ptr<const Maze> maze_;
  Robot robot_ = {};
  std::vector<MazePose> path_;  // poses since the start, steps + 1
  int64_t last_step_ = 0;
  End end_;
};

class HardMazeFactory : public EnvFactory {
 public:
  explicit HardMazeFactory(const EnvOptions& options) : maze_(std::make_shared<const Maze>(options)) {
    if (maze_->image) {
      spec_.observation_dtype = DType::kUint8;
      spec_.observation_shape = {MazeFrames::kSide, MazeFrames::kSide, MazeFrames::kFrames};
    } else {
      spec_.observation_dtype = DType::kFloat32;
      spec_.observation_shape = {kSensors};
    }
    spec_.action_dtype = DType::kFloat32;
    spec_.num_actions = 2;
    spec_.action_low = {-1, -1};
    spec_.action_high = {1, 1};
    spec_.action_names = "turn\nspeed";
    spec_.behavior_dtype = DType::kFloat64;
    spec_.behavior_shape = {2};
    spec_.render_shape = {maze_->screen->height(), maze_->screen->width(), 3};
    spec_.state_size = 5;
    spec_.keyed = true;
    spec_.steps_per_task = 64;
    if (!maze_->image) spec_.observations_per_task = 64;
  }

  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<HardMazeEnv>(maze_); }

 private:
  EnvSpec spec_;
  std::shared_ptr<const Maze> maze_;
};

const bool registered = RegisterEnvFamily(
    "hard_maze", [](const EnvOptions& options) { return std::make_unique<HardMazeFactory>(options); });

}  // namespace
}  // namespace neuroevo
