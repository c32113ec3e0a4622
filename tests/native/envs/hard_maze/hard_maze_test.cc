// The hard maze: geometry against brute force, motion of the robot, ends of episodes, and pictures. Whole episodes are
// compared with a simulation in Python (tests/envs/test_hard_maze.py). (Invalid options and maps are in maps_test.cc.)
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/portable_math.h"
#include "envs/hard_maze/map.h"
#include "envs/hard_maze/picture.h"
#include "envs/hard_maze/robot.h"
#include "native/check.h"
#include "native/envs/hard_maze/mazes.h"

using namespace neuroevo;

namespace {

constexpr double kPi = 3.14159265358979323846;

// A long corridor along x: the robot starts at 0, 0.
std::string Corridor(const std::string& goal) {
  return "start 0 0\nheading 0\ngoal " + goal + "\nwall -50 20 500 20\nwall -50 -20 500 -20\nwall 500 -20 500 20\n";
}

// Which side of the line through a wall a point is on.
double Side(const MazeWall& wall, double x, double y) {
  return (wall.x1 - wall.x0) * (y - wall.y0) - (wall.y1 - wall.y0) * (x - wall.x0);
}

// How far a walk in small steps gets before it is through a wall.
double March(const std::vector<MazeWall>& walls, double x, double y, Direction direction, double step) {
  for (double from = 0; from < kRobotSight; from += step) {
    const MazeWall here = {x + from * direction.x, y + from * direction.y, x + (from + step) * direction.x,
                           y + (from + step) * direction.y};
    for (const MazeWall& wall : walls) {
      const bool through_line = (Side(wall, here.x0, here.y0) > 0) != (Side(wall, here.x1, here.y1) > 0);
      const bool between_ends = (Side(here, wall.x0, wall.y0) > 0) != (Side(here, wall.x1, wall.y1) > 0);
      if (through_line && between_ends) return from;
    }
  }
  return kRobotSight;
}

// A robot somewhere in the maze.
Robot Anywhere(const MazeWalls& walls, std::mt19937* random) {
  std::uniform_real_distribution<double> place(5, 200), heading(0, 360);
  for (;;) {
    const Robot robot = {place(*random), place(*random), heading(*random), 0, 0};
    if (walls.SquaredDistance(robot.x, robot.y) > kRobotRadius * kRobotRadius) return robot;
  }
}

}  // namespace

TEST(DirectionsAreSineAndCosine) {
  for (int i = 0; i <= 36'000; ++i) {
    const double degrees = i / 100.0;
    const Direction direction = DirectionOf(degrees);
    CHECK(std::abs(direction.x - std::cos(degrees / 180 * kPi)) < 1e-15);
    CHECK(std::abs(direction.y - std::sin(degrees / 180 * kPi)) < 1e-15);
  }
  const double exact[5][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, 0}};
  for (int quarter = 0; quarter < 5; ++quarter) {
    const Direction direction = DirectionOf(90 * quarter);
    CHECK(direction.x == exact[quarter][0] && direction.y == exact[quarter][1]);
  }
}

TEST(DistanceIsThatOfTheNearestPointOfAWall) {
  for (const char* name : {"hard", "medium"}) {
    const MazeMap map = ReadMazeMap(MapFile(name));
    const MazeWalls walls(map.walls);
    std::mt19937 random(1);
    std::uniform_real_distribution<double> place(-20, 300);
    for (int i = 0; i < 200; ++i) {
      const double x = place(random), y = place(random);
      double nearest = std::numeric_limits<double>::infinity();
      for (const MazeWall& wall : map.walls) {
        for (int part = 0; part <= 2000; ++part) {
          const double at = part / 2000.0;
          nearest = std::min(
              nearest, std::hypot(wall.x0 + at * (wall.x1 - wall.x0) - x, wall.y0 + at * (wall.y1 - wall.y0) - y));
        }
      }
      CHECK(std::abs(std::sqrt(walls.SquaredDistance(x, y)) - nearest) < 0.1);
    }
  }
}

TEST(RangefindersSeeAsFarAsAWalkGets) {
  const MazeMap map = ReadMazeMap(MapFile("hard"));
  const MazeWalls walls(map.walls);
  std::mt19937 random(2);
  constexpr double kStep = 0.01, kAngles[] = {-90, -45, 0, 45, 90, 180};
  int free = 0, blocked = 0;
  for (int i = 0; i < 60; ++i) {
    const Robot robot = Anywhere(walls, &random);
    const auto sensors = Sense(walls, robot, map.goal_x, map.goal_y);
    CHECK_EQ(sensors[0], 1);
    for (int angle = 0; angle < 6; ++angle) {
      const double radians = (robot.heading + kAngles[angle]) / 180 * kPi;
      const double far = March(map.walls, robot.x, robot.y, {std::cos(radians), std::sin(radians)}, kStep);
      const double seen = sensors[1 + angle] * kRobotSight;
      CHECK(seen == far || (seen > far - 1e-9 && seen < far + kStep + 1e-9));
      ++(far == kRobotSight ? free : blocked);
    }
  }
  CHECK(free > 20 && blocked > 200);
}

TEST(WhatIsParallelToAWallIsNotSeen) {
  const MazeWalls walls({{0, 0, 10, 0}});
  for (double y : {0.0, 5.0}) {
    const MazeWalls::Sight sight = walls.Look(-20, y, {1, 0});
    CHECK(sight.ahead == kRobotSight && sight.behind == kRobotSight);
  }
}

TEST(QuartersOfTheGoal) {
  const MazeMap map = ReadMazeMap(MapFile("hard"));
  const MazeWalls walls(map.walls);
  std::mt19937 random(3);
  std::array<int, 4> counts{};
  for (int i = 0; i < 2000; ++i) {
    const Robot robot = Anywhere(walls, &random);
    double angle = std::atan2(map.goal_y - robot.y, map.goal_x - robot.x) / kPi * 180 - robot.heading;
    while (angle < -45) angle += 360;
    const int quarter = static_cast<int>((angle + 45) / 90);
    const auto sensors = Sense(walls, robot, map.goal_x, map.goal_y);
    for (int each = 0; each < 4; ++each) CHECK_EQ(sensors[7 + each], each == quarter ? 1 : 0);
    ++counts[quarter];
  }
  for (int count : counts) CHECK(count > 100);
  // The bounds, where a goal is in one quarter only: the one that begins there. And the robot's own place.
  const double bounds[5][3] = {{1, -1, 0}, {1, 1, 1}, {-1, 1, 2}, {-1, -1, 3}, {0, 0, 3}};
  for (const auto& [x, y, quarter] : bounds) {
    const auto sensors = Sense(walls, {100, 100, 0, 0, 0}, 100 + x, 100 + y);
    for (int each = 0; each < 4; ++each) CHECK_EQ(sensors[7 + each], each == quarter ? 1 : 0);
  }
}

TEST(ActionsChangeSpeedsOrSayThem) {
  Robot robot = {0, 0, 0, 0, 0};
  ChangeSpeeds(1, -0.5, &robot);
  CHECK(robot.turn == 0.5 && robot.speed == -0.25);
  for (int i = 0; i < 20; ++i) ChangeSpeeds(1, -0.5, &robot);
  CHECK(robot.turn == 3 && robot.speed == -3);

  robot = {0, 0, 0, 0, 0};
  ApproachSpeeds(1, 0.05, &robot);
  CHECK(robot.turn == 0.2 && std::abs(robot.speed - 0.15) < 1e-15);  // the target speed is reached in one step
  for (int i = 0; i < 20; ++i) ApproachSpeeds(-1, 0.05, &robot);
  CHECK(robot.turn == -3 && std::abs(robot.speed - 0.15) < 1e-15);
}

TEST(MovesAlongItsOldHeadingThenTurns) {
  const MazeWalls walls({{1000, 0, 1000, 1}});
  Robot robot = {0, 0, 90, 2, -3};
  Move(walls, &robot);
  CHECK(robot.x == 0 && robot.y == 2 && robot.heading == 87);
  robot = {0, 0, 359, 0, 3};
  Move(walls, &robot);
  CHECK_EQ(robot.heading, 2);
  robot.turn = -3;
  Move(walls, &robot);
  CHECK_EQ(robot.heading, 359);
}

TEST(StopsBeforeWallsAndKeepsItsSpeed) {
  const TemporaryMap map("start 0 0\nheading 0\ngoal 0 50\nwall 20 -100 20 100\n");
  Mazes one({{"map", map.name()}});
  one.Reset();
  double x = 0, speed = 0;
  bool stopped = false;
  for (int step = 0; step < 30; ++step) {
    one.Step(0, 1);
    speed = std::min(speed + 0.5, 3.0);
    stopped = x + speed > 12;  // nearer than its radius
    if (!stopped) x += speed;
    CHECK((one.State() == std::array<double, 5>{x, 0, 0, speed, 0}));
  }
  CHECK(stopped && x == 10.5);
  // It can turn there, and drive back.
  for (int step = 0; step < 12; ++step) one.Step(0, -1);
  CHECK(one.State()[0] < 10.5);
}

TEST(NeverNearerToAWallThanItsRadius) {
  const MazeMap map = ReadMazeMap(MapFile("hard"));
  const MazeWalls walls(map.walls);
  for (const char* protocol : {"lehman", "uber"}) {
    Mazes one({{"map", MapFile("hard")}, {"protocol", protocol}});
    std::mt19937 random(4);
    std::uniform_real_distribution<float> turn(-1, 1), speed(-0.2f, 1);
    int stops = 0;
    for (int episode = 0; episode < 20; ++episode) {
      one.Reset();
      std::array<double, 5> before = one.State();
      for (bool done = false; !done;) {
        done = one.Step(turn(random), speed(random)).done;
        const auto state = one.State();
        CHECK(walls.SquaredDistance(state[0], state[1]) >= kRobotRadius * kRobotRadius);
        CHECK(state[2] >= 0 && state[2] <= 360 && std::abs(state[3]) <= 3 && std::abs(state[4]) <= 3);
        stops += state[3] != 0 && state[0] == before[0] && state[1] == before[1];
        before = state;
      }
    }
    CHECK(stops > 100);
  }
}

TEST(OnlyTheLastStepIsRewarded) {
  for (const auto& [max_frames, max_steps, last] :
       {std::array<int, 3>{0, 400, 400}, {25, 400, 25}, {1000, 400, 400}, {0, 7, 7}, {3, 7, 3}, {1, 400, 1}}) {
    Mazes one({{"map", MapFile("hard")}, {"max_episode_steps", std::to_string(max_steps)}});
    one.Reset(max_frames);
    for (int step = 1; step <= last; ++step) {
      const StepResult result = one.Step(0.1f, 0.3f);
      CHECK_EQ(result.done, step == last);
      if (step < last) CHECK(result.reward == 0 && !std::signbit(result.reward));
      if (step == last) CHECK(std::abs(result.reward + std::hypot(one.State()[0] - 31, one.State()[1] - 20)) < 1e-12);
    }
    CHECK_THROWS(one.Step(0, 0), "slot 0 is not live");
    std::array<double, 2> behavior;
    one.pool.Behavior({0}, behavior.data());
    CHECK(behavior[0] == one.State()[0] && behavior[1] == one.State()[1]);
  }
}

TEST(TheGoalEndsAnEpisodeOfThePaperOnly) {
  const TemporaryMap map(Corridor("100 0"));
  Mazes paper({{"map", map.name()}});
  paper.Reset();
  StepResult result{};
  int steps = 0;
  for (; !result.done; ++steps) result = paper.Step(0, 1);
  CHECK(steps < 50 && result.reward < 0 && result.reward > -5);
  CHECK(paper.State()[0] > 95 && paper.State()[0] < 98.01);

  Mazes uber({{"map", map.name()}, {"protocol", "uber"}});
  uber.Reset();
  for (int step = 1; step <= 400; ++step) CHECK_EQ(uber.Step(0, 1).done, step == 400);
  CHECK(uber.State()[0] > 400);
}

TEST(ActionsAreCutOffAtTheirBounds) {
  Mazes some({{"map", MapFile("hard")}}, 1), more({{"map", MapFile("hard")}}, 1);
  some.Reset();
  more.Reset();
  for (int step = 0; step < 50; ++step) {
    some.Step(-1, 1);
    more.Step(-1e30f, 7);
    CHECK(some.State() == more.State());
  }
  const StepResult result = some.Step(std::numeric_limits<float>::quiet_NaN(), 0);
  CHECK(result.done && result.reward == 0);
  CHECK_EQ(some.pool.Failure(0), "action[0] is nan, expected a finite number");
}

// The numbers are identical in the portable, AVX2 and AVX-512 builds; other tests check that they are correct.
TEST(TheSameBitsEverywhere) {
  for (const auto& [protocol, x, y, seen] :
       {std::tuple{"lehman", 0x1.483ce684c0fecp+7, 0x1.7d42abb75623bp+7, uint64_t{17095409422388440383u}},
        {"uber", 0x1.536f947235768p+6, 0x1.664be84a29613p+7, uint64_t{17486092186034267532u}}}) {
    Mazes one({{"map", MapFile("hard")}, {"protocol", protocol}});
    std::mt19937 random(5);
    one.Reset();
    uint64_t hash = 0;
    for (bool done = false; !done;) {
      const float turn = static_cast<float>(random()) * 0x1p-31f - 1, speed = static_cast<float>(random()) * 0x1p-32f;
      done = one.Step(turn, speed).done;
      for (float each : one.Sensors()) hash = (hash ^ ToBits(each)) * 0x100000001b3u;
    }
    CHECK_EQ(one.State()[0], x);
    CHECK_EQ(one.State()[1], y);
    CHECK_EQ(hash, seen);
  }
}

TEST(ManyTogetherAsOneAlone) {
  constexpr int64_t kSlots = 20;
  Mazes one({{"map", MapFile("hard")}}), many({{"map", MapFile("hard")}}, kSlots, 3);
  std::mt19937 random(6);
  std::uniform_real_distribution<float> between(-1, 1);
  one.Reset();
  many.Reset();
  for (int step = 0; step < 100; ++step) {
    std::vector<float> actions(2 * kSlots);
    for (int64_t slot = 0; slot < kSlots; ++slot) {  // slot s does nothing until step s
      actions[2 * slot] = step < slot ? 0 : between(random);
      actions[2 * slot + 1] = step < slot ? 0 : between(random);
    }
    std::vector<double> rewards(kSlots);
    bool dones[kSlots];
    many.pool.Step(many.all, actions.data(), rewards.data(), dones);
    one.Step(actions[2 * 7], actions[2 * 7 + 1]);
    std::vector<double> states(5 * kSlots);
    many.pool.State(many.all, states.data());
    CHECK(std::equal(states.begin() + 5 * 7, states.begin() + 5 * 8, one.State().begin()));
    std::vector<float> sensors(kSensors * kSlots);
    many.pool.Observe(many.all, sensors.data());
    CHECK(std::equal(sensors.begin() + kSensors * 7, sensors.begin() + kSensors * 8, one.Sensors().begin()));
  }
}

TEST(FramesAreTheLastFour) {
  constexpr int kPixels = MazeFrames::kSide * MazeFrames::kSide;
  Mazes one({{"map", MapFile("hard")}, {"observation", "image"}});
  CHECK((one.pool.spec().observation_shape == std::vector<int64_t>{84, 84, 4}));
  const auto frame = [](const std::vector<uint8_t>& image, int which) {
    std::vector<uint8_t> pixels(kPixels);
    for (int i = 0; i < kPixels; ++i) pixels[i] = image[4 * i + which];
    return pixels;
  };
  one.Reset();
  std::vector<uint8_t> before = one.Image();
  for (int which = 0; which < 3; ++which) CHECK(frame(before, which) == std::vector<uint8_t>(kPixels, 0));
  for (int step = 0; step < 8; ++step) {
    one.Step(0.2f, 1);
    const std::vector<uint8_t> now = one.Image();
    for (int which = 0; which < 3; ++which) CHECK(frame(now, which) == frame(before, which + 1));
    CHECK(frame(now, 3) != frame(now, 2));
    before = now;
  }

  // What is where: the map is 197 units high, and its margins are 2% of that.
  const double unit = 84 / (1.04 * 197), left = (3 + 195 - 84 / unit) / 2, top = (5 + 202 - 84 / unit) / 2;
  const auto gray = [&](double x, double y) {
    return before[4 * (static_cast<int>((y - top) * unit) * 84 + static_cast<int>((x - left) * unit)) + 3];
  };
  const auto [x, y, heading, speed, turn] = one.State();
  const double radians = (heading + 90) / 180 * kPi;
  CHECK_EQ(gray(x + 4 * std::cos(radians), y + 4 * std::sin(radians)), 192);
  CHECK(gray(x + 4 * std::sin(radians), y - 4 * std::cos(radians)) < 100);  // the line in the heading's direction
  CHECK_EQ(gray(31, 20), 128);
  CHECK(gray(56, 100) > 100);
  CHECK_EQ(gray(100, 70), 0);
}

TEST(TheScreenShowsTheRobotAndItsPath) {
  Mazes one({{"map", MapFile("hard")}});
  CHECK((one.pool.spec().render_shape == std::vector<int64_t>{400, 392, 3}));
  one.Reset();
  for (int step = 0; step < 20; ++step) one.Step(0.01f, 1);
  std::vector<uint8_t> screen(one.pool.spec().render_bytes());
  one.pool.Render({0}, screen.data());
  const double unit = 400 / (1.04 * 197), left = (3 + 195 - 392 / unit) / 2, top = (5 + 202 - 400 / unit) / 2;
  const auto color = [&](double x, double y) {
    const uint8_t* at = &screen[3 * (static_cast<int>((y - top) * unit) * 392 + static_cast<int>((x - left) * unit))];
    return std::vector<int>{at[0], at[1], at[2]};
  };
  const auto state = one.State();
  CHECK((color(state[0], state[1] + 5) == std::vector<int>{210, 50, 40}));
  CHECK((color(36, 184) == std::vector<int>{90, 140, 230}));
  CHECK((color(31, 20) == std::vector<int>{40, 160, 60}));
  CHECK((color(56, 100) == std::vector<int>{0, 0, 0}));
  CHECK((color(100, 70) == std::vector<int>{255, 255, 255}));
}

TEST(PicturesOfARobotThatHasLeftTheMap) {
  const TemporaryMap map("start 0 0\nheading 0\ngoal 0 50\nwall 20 30 40 30\n");
  Mazes screen({{"map", map.name()}}), image({{"map", map.name()}, {"observation", "image"}});
  for (const float speed : {1.0f, -1.0f}) {
    screen.Reset();
    image.Reset();
    std::vector<uint8_t> rgb(screen.pool.spec().render_bytes());
    for (int step = 0; step < 400; ++step) {
      screen.Step(0.02f, speed);
      image.Step(0.02f, speed);
      screen.pool.Render({0}, rgb.data());
      image.Image();
    }
    CHECK(std::abs(screen.State()[0]) > 100 || std::abs(screen.State()[1]) > 100);
  }
}
