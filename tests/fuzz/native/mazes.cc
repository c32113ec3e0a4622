// Fuzzes the maps of the hard maze (envs/hard_maze/map.h). A map is refused with an Error, or a robot goes through it,
// whose place, sight and pictures must be what they can be; a part of the maps is played by an env pool, which draws a
// large screen of each.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "envs/env_pool.h"
#include "envs/hard_maze/map.h"
#include "envs/hard_maze/picture.h"
#include "envs/hard_maze/robot.h"
#include "fuzz/native/file.h"
#include "fuzz/native/target.h"

namespace neuroevo::fuzz {
namespace {

constexpr int kSteps = 20;
constexpr size_t kMaxWalls = 60;  // of a map that is drawn

double Action(Random* random) { return static_cast<double>(random->Below(2001) - 1000) / 1000; }

void CheckSensors(const std::array<double, kSensors>& sensors) {
  for (const double value : sensors) Require(value >= 0 && value <= 1, "a sensor is ", value, ", expected 0 to 1");
  const double quarters = sensors[7] + sensors[8] + sensors[9] + sensors[10];
  Require(quarters == 1, "the goal is in ", quarters, " quarters");
}

void Walk(const MazeMap& map, Random* random) {
  const MazeWalls walls(map.walls);
  Robot robot = {map.start_x, map.start_y, map.heading, 0, 0};
  std::vector<MazePose> path;
  const bool uber = random->Chance(50), starts_free = walls.SquaredDistance(robot.x, robot.y) >= 64;
  for (int step = 0; step < kSteps; ++step) {
    path.push_back({robot.x, robot.y, robot.heading});
    const double turn = Action(random), speed = Action(random);
    (uber ? ApproachSpeeds : ChangeSpeeds)(turn, speed, &robot);
    Move(walls, &robot);
    Require(std::isfinite(robot.x) && std::isfinite(robot.y), "the robot is at ", robot.x, ", ", robot.y);
    Require(robot.heading >= 0 && robot.heading <= 360, "the robot looks at ", robot.heading, " degrees");
    Require(!starts_free || walls.SquaredDistance(robot.x, robot.y) >= 64, "the robot is in a wall");
    CheckSensors(Sense(walls, robot, map.goal_x, map.goal_y));
  }
  if (map.walls.size() > kMaxWalls) return;
  std::vector<uint8_t> frames(MazeFrames::kSide * MazeFrames::kSide * MazeFrames::kFrames);
  MazeFrames(map, walls).Draw(path, frames.data());
}

void Play(const std::string& file, Random* random) {
  static const auto threads = std::make_shared<ThreadPool>(1);
  const EnvOptions options = {{"map", file},
                              {"observation", random->Chance(50) ? "image" : "sensors"},
                              {"protocol", random->Chance(50) ? "uber" : "lehman"},
                              {"max_episode_steps", std::to_string(1 + random->Below(4))}};
  EnvPool pool("hard_maze", options, 1, threads);
  std::vector<uint8_t> observation(pool.spec().observation_bytes()), screen(pool.spec().render_bytes());
  double state[5], reward;
  bool done = false;
  pool.Reset({0}, {0}, {0});
  while (!done) {
    const float actions[] = {static_cast<float>(Action(random)), static_cast<float>(Action(random))};
    pool.Step({0}, actions, &reward, &done);
    pool.Observe({0}, observation.data());
    pool.Render({0}, screen.data());
    pool.State({0}, state);
    Require(std::isfinite(reward) && std::isfinite(state[0]) && std::isfinite(state[1]), "the reward is ", reward);
  }
}

}  // namespace
}  // namespace neuroevo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neuroevo;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const fuzz::MemoryFile file(text);
  fuzz::Random random(text);
  try {
    const MazeMap map = ReadMazeMap(file.path());
    fuzz::Walk(map, &random);
    if (map.walls.size() <= fuzz::kMaxWalls && random.Chance(10)) fuzz::Play(file.path(), &random);
  } catch (const Error&) {
  }
  return 0;
}
