// The robot of the hard maze: how it moves, and what it senses of the walls and the goal (Lehman and Stanley 2011;
// their code, and that of arXiv 1712.06567, tell what the paper leaves open). Angles are in degrees and grow from x
// towards y; lengths are in units of the map; a step is the unit of time.
//
// Results have the same bits everywhere: they are made of additions, multiplications, divisions and comparisons only,
// in an order that is written out, and minima, whose order does not matter. Sine and cosine are our own.
#ifndef NEUROEVO_ENVS_HARD_MAZE_ROBOT_H_
#define NEUROEVO_ENVS_HARD_MAZE_ROBOT_H_

#include <array>
#include <cstddef>
#include <vector>

#include "envs/hard_maze/map.h"

namespace neuroevo {

constexpr double kRobotRadius = 8;
constexpr double kRobotSight = 100;  // how far the rangefinders see
constexpr double kGoalRadius = 5;    // whose center is nearer to the goal is there, in the paper

struct Direction {
  double x, y;  // of length 1
};

// Exact at multiples of 90. degrees: in [0, 360].
Direction DirectionOf(double degrees);

class MazeWalls {
 public:
  explicit MazeWalls(const std::vector<MazeWall>& walls);

  // The square of the distance to the nearest wall.
  double SquaredDistance(double x, double y) const;

  // How far the walls are along a line through a point: where it goes, and the other way; at most kRobotSight.
  struct Sight {
    double ahead, behind;
  };
  Sight Look(double x, double y, Direction direction) const;

 private:
  // Walls are looked at this many at a time, as the widest vectors do.
  static constexpr size_t kAtOnce = 8;

  // Of each wall one end, the vector to the other one, and that divided by the square of its length. In whole groups:
  // what the last one lacks is the first wall again.
  std::vector<double> x_, y_, to_x_, to_y_, unit_x_, unit_y_;
};

struct Robot {
  double x, y;     // its center
  double heading;  // in [0, 360]
  double speed;    // per step; negative: backwards
  double turn;     // degrees per step
};

// What the two numbers of an action, in [-1, 1], do to turn and speed. In the paper they change them by up to 0.5 per
// step; in the code of arXiv 1712.06567 they say which ones, up to 3, to approach by up to 0.2 per step.
void ChangeSpeeds(double turn, double speed, Robot* robot);
void ApproachSpeeds(double turn, double speed, Robot* robot);

// One step: straight on, unless it would come too near a wall, where it stays; then it turns.
void Move(const MazeWalls& walls, Robot* robot);

// What it senses: 1; the six rangefinders at -90, -45, 0, 45, 90 and 180 degrees from its heading, as parts of
// kRobotSight; whether the goal is in each of the four quarters around 0, 90, 180 and 270 degrees.
constexpr int kSensors = 11;
std::array<double, kSensors> Sense(const MazeWalls& walls, const Robot& robot, double goal_x, double goal_y);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_HARD_MAZE_ROBOT_H_
