// Maps of mazes, as text files. A line is one of
//   start X Y        initial position of the robot's center
//   heading DEGREES  initial heading of the robot, in [0, 360]: 0 is along x, 90 along y
//   goal X Y
//   wall X Y X Y     end points of a wall
// or empty; # starts a comment. Each line type except wall occurs exactly once.
#ifndef NEUROEVO_ENVS_HARD_MAZE_MAP_H_
#define NEUROEVO_ENVS_HARD_MAZE_MAP_H_

#include <string>
#include <vector>

namespace neuroevo {

struct MazeWall {
  double x0, y0, x1, y1;
};

struct MazeMap {
  double start_x = 0, start_y = 0, heading = 0, goal_x = 0, goal_y = 0;
  std::vector<MazeWall> walls;
};

// Read a map. Throws for an unreadable or invalid file; the message has the line and what was expected there.
MazeMap ReadMazeMap(const std::string& file);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_HARD_MAZE_MAP_H_
