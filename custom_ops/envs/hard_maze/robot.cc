#include "envs/hard_maze/robot.h"

#include <algorithm>
#include <limits>

namespace neuroevo {
namespace {

constexpr double kMaxSpeed = 3;            // forward or backward, and of turning in either direction
constexpr double kSpeedChange = 0.5;       // change for an action of 1, in the paper
constexpr double kMaxSpeedApproach = 0.2;  // maximum change per step, in the code of arXiv 1712.06567
constexpr double kRadiansPerDegree = 0x1.1df46a2529d39p-6;
constexpr double kHalfRoot = 0x1.6a09e667f3bcdp-1;  // 1 / sqrt(2)

double Bounded(double value, double bound) { return std::clamp(value, -bound, bound); }

// Taylor series for |x| <= pi / 4, with a truncation error below 1e-16.
double Sine(double x) {
  const double square = x * x;
  double sum = -1.0 / 1307674368000;
  for (const double term : {1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6}) {
    sum = sum * square + term;
  }
  return sum * square * x + x;
}

double Cosine(double x) {
  const double square = x * x;
  double sum = 1.0 / 20922789888000;
  for (const double term : {-1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24}) {
    sum = sum * square + term;
  }
  return (sum * square - 0.5) * square + 1;
}

}  // namespace

Direction DirectionOf(double degrees) {
  const int quarter = static_cast<int>(degrees / 90 + 0.5);
  const double rest = (degrees - 90 * quarter) * kRadiansPerDegree;  // the difference is exact
  const double cosine = Cosine(rest), sine = Sine(rest);
  switch (quarter % 4) {
    case 0:
      return {cosine, sine};
    case 1:
      return {-sine, cosine};
    case 2:
      return {-cosine, -sine};
    default:
      return {sine, -cosine};
  }
}

MazeWalls::MazeWalls(const std::vector<MazeWall>& walls) {
  const size_t groups = (walls.size() + kAtOnce - 1) / kAtOnce;
  for (size_t i = 0; i < groups * kAtOnce; ++i) {
    const MazeWall& wall = walls[i < walls.size() ? i : 0];
    const double to_x = wall.x1 - wall.x0, to_y = wall.y1 - wall.y0;
    const double squared_length = to_x * to_x + to_y * to_y;
    x_.push_back(wall.x0), y_.push_back(wall.y0);
    to_x_.push_back(to_x), to_y_.push_back(to_y);
    unit_x_.push_back(to_x / squared_length), unit_y_.push_back(to_y / squared_length);
  }
}

double MazeWalls::SquaredDistance(double x, double y) const {
  double nearest[kAtOnce];
  std::fill_n(nearest, kAtOnce, std::numeric_limits<double>::infinity());
  for (size_t group = 0; group < x_.size(); group += kAtOnce) {
    for (size_t i = 0; i < kAtOnce; ++i) {
      const size_t w = group + i;
      const double from_x = x_[w] - x, from_y = y_[w] - y;
      double part = -(from_x * unit_x_[w] + from_y * unit_y_[w]);  // position of the nearest point along the wall
      part = part < 0 ? 0 : part;
      part = part > 1 ? 1 : part;
      const double away_x = from_x + part * to_x_[w], away_y = from_y + part * to_y_[w];
      const double squared = away_x * away_x + away_y * away_y;
      nearest[i] = squared < nearest[i] ? squared : nearest[i];
    }
  }
  return *std::min_element(nearest, nearest + kAtOnce);
}

MazeWalls::Sight MazeWalls::Look(double x, double y, Direction direction) const {
  double ahead[kAtOnce], behind[kAtOnce];  // behind is negative
  std::fill_n(ahead, kAtOnce, kRobotSight);
  std::fill_n(behind, kAtOnce, -kRobotSight);
  for (size_t group = 0; group < x_.size(); group += kAtOnce) {
    for (size_t i = 0; i < kAtOnce; ++i) {
      const size_t w = group + i;
      const double from_x = x_[w] - x, from_y = y_[w] - y;
      // Cross products. For a parallel wall, part is infinite or NaN, which does not count as a hit.
      const double scale = 1 / (direction.x * to_y_[w] - direction.y * to_x_[w]);
      const double part = (from_x * direction.y - from_y * direction.x) * scale;  // position of the hit along the wall
      const double distance = (from_x * to_y_[w] - from_y * to_x_[w]) * scale;
      const bool hit = (part > 0) & (part < 1);
      ahead[i] = hit & (distance > 0) & (distance < ahead[i]) ? distance : ahead[i];
      behind[i] = hit & (distance < 0) & (distance > behind[i]) ? distance : behind[i];
    }
  }
  return {*std::min_element(ahead, ahead + kAtOnce), -*std::max_element(behind, behind + kAtOnce)};
}

void ChangeSpeeds(double turn, double speed, Robot* robot) {
  robot->turn = Bounded(robot->turn + kSpeedChange * turn, kMaxSpeed);
  robot->speed = Bounded(robot->speed + kSpeedChange * speed, kMaxSpeed);
}

void ApproachSpeeds(double turn, double speed, Robot* robot) {
  robot->turn = Bounded(robot->turn + Bounded(kMaxSpeed * turn - robot->turn, kMaxSpeedApproach), kMaxSpeed);
  robot->speed = Bounded(robot->speed + Bounded(kMaxSpeed * speed - robot->speed, kMaxSpeedApproach), kMaxSpeed);
}

void Move(const MazeWalls& walls, Robot* robot) {
  const Direction direction = DirectionOf(robot->heading);
  robot->heading += robot->turn;
  if (robot->heading > 360) robot->heading -= 360;
  if (robot->heading < 0) robot->heading += 360;
  const double x = robot->x + direction.x * robot->speed, y = robot->y + direction.y * robot->speed;
  if (walls.SquaredDistance(x, y) < kRobotRadius * kRobotRadius) return;
  robot->x = x, robot->y = y;
}

std::array<double, kSensors> Sense(const MazeWalls& walls, const Robot& robot, double goal_x, double goal_y) {
  const Direction front = DirectionOf(robot.heading);
  const Direction side = {-front.y, front.x};                                                         // at 90 degrees
  const Direction diagonal = {(front.x + side.x) * kHalfRoot, (front.y + side.y) * kHalfRoot};        // at 45
  const Direction other_diagonal = {(front.x - side.x) * kHalfRoot, (front.y - side.y) * kHalfRoot};  // at -45
  const MazeWalls::Sight along = walls.Look(robot.x, robot.y, front), across = walls.Look(robot.x, robot.y, side);
  const double see_45 = walls.Look(robot.x, robot.y, diagonal).ahead;
  const double see_minus_45 = walls.Look(robot.x, robot.y, other_diagonal).ahead;

  // The goal in the robot's frame. A quarter includes its lower but not its upper bound; a goal at the robot's center
  // counts as being at 270 degrees, as in the authors' code.
  const double to_x = goal_x - robot.x, to_y = goal_y - robot.y;
  const double ahead = to_x * front.x + to_y * front.y, aside = to_x * side.x + to_y * side.y;
  const bool at_0 = aside >= -ahead && aside < ahead;
  const bool at_90 = aside >= ahead && aside > -ahead;
  const bool at_180 = aside <= -ahead && aside > ahead;
  const bool at_270 = !at_0 && !at_90 && !at_180;

  return {1,
          across.behind / kRobotSight,
          see_minus_45 / kRobotSight,
          along.ahead / kRobotSight,
          see_45 / kRobotSight,
          across.ahead / kRobotSight,
          along.behind / kRobotSight,
          at_0 ? 1.0 : 0.0,
          at_90 ? 1.0 : 0.0,
          at_180 ? 1.0 : 0.0,
          at_270 ? 1.0 : 0.0};
}

}  // namespace neuroevo
