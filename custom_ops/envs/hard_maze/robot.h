// The robot of the hard maze: its motion and its sensors of walls and goal (Lehman and Stanley 2011; details that the
// paper does not specify follow their code and that of arXiv 1712.06567). Angles are in degrees and increase from x to
// y; lengths are in units of the map; a step is the unit of time.
//
// Results are bit-identical on all machines: only additions, multiplications, divisions and comparisons in a fixed
// order are used, minima, whose order does not matter, and our own sine and cosine.
#ifndef NEUROEVO_ENVS_HARD_MAZE_ROBOT_H_
#define NEUROEVO_ENVS_HARD_MAZE_ROBOT_H_

#include <array>
#include <cstddef>
#include <vector>

#include "envs/hard_maze/map.h"

namespace neuroevo {

constexpr double kRobotRadius = 8;
constexpr double kRobotSight = 100;  // range of the rangefinders
constexpr double kGoalRadius = 5;    // distance to the goal below which the robot has reached it, in the paper

struct Direction {
  double x, y;  // unit vector
};

// Return the direction of an angle in [0, 360] degrees; exact at multiples of 90.
Direction DirectionOf(double degrees);

class MazeWalls {
 public:
  explicit MazeWalls(const std::vector<MazeWall>& walls);

  // Return the squared distance to the nearest wall.
  double SquaredDistance(double x, double y) const;

  // Distances to the walls along a line through a point, in its direction and opposite to it; at most kRobotSight.
  struct Sight {
    double ahead, behind;
  };
  Sight Look(double x, double y, Direction direction) const;

 private:
  // Walls are processed in groups of this size, the lanes of the widest vectors.
  static constexpr size_t kAtOnce = 8;

  // For each wall one end, the vector to the other end, and that vector divided by its squared length. The last group
  // is padded with copies of the first wall.
  std::vector<double> x_, y_, to_x_, to_y_, unit_x_, unit_y_;
};

struct Robot {
  double x, y;     // position of the center
  double heading;  // in [0, 360]
  double speed;    // per step; negative: backwards
  double turn;     // degrees per step
};

// Apply an action's two components, in [-1, 1], to turn and speed. In the paper they change both by up to 0.5 per step;
// in the code of arXiv 1712.06567 they are targets up to 3, which are approached by up to 0.2 per step.
void ChangeSpeeds(double turn, double speed, Robot* robot);
void ApproachSpeeds(double turn, double speed, Robot* robot);

// Perform one step: move straight ahead, unless the robot would come too close to a wall, then turn.
void Move(const MazeWalls& walls, Robot* robot);

// Sensor values: a constant 1; six rangefinders at -90, -45, 0, 45, 90 and 180 degrees from the heading, as fractions
// of kRobotSight; four flags, whether the goal is in the quarter around 0, 90, 180 and 270 degrees.
constexpr int kSensors = 11;
std::array<double, kSensors> Sense(const MazeWalls& walls, const Robot& robot, double goal_x, double goal_y);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_HARD_MAZE_ROBOT_H_
