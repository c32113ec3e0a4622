// Maps of mazes, as text files. A line is one of
//   start X Y        where the robot's center is at first
//   heading DEGREES  where it looks at first, in [0, 360]: 0 is along x, 90 along y
//   goal X Y
//   wall X Y X Y     from one end to the other
// or empty; what follows a # is a comment. Each comes once, but for the walls.
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

// Throws for a file that cannot be read, or that is not a map: with the line and what was expected there.
MazeMap ReadMazeMap(const std::string& file);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_HARD_MAZE_MAP_H_
