// Pictures of a maze from above: a color screen for rendering, and grayscale frames as observations. x points right and
// y down, as in the paper's figures.
#ifndef NEUROEVO_ENVS_HARD_MAZE_PICTURE_H_
#define NEUROEVO_ENVS_HARD_MAZE_PICTURE_H_

#include <cstdint>
#include <vector>

#include "envs/hard_maze/map.h"
#include "envs/hard_maze/robot.h"

namespace neuroevo {

// Part of the plane that a picture shows: the whole map with a margin.
struct MazeWindow {
  int height, width;  // pixels
  double left, top;   // of its corner, in units of the map
  double unit;        // pixels per unit of the map

  double x(int column) const { return left + (column + 0.5) / unit; }
  double y(int row) const { return top + (row + 0.5) / unit; }
};

struct MazePose {
  double x, y, heading;
};

class MazeScreen {
 public:
  MazeScreen(const MazeMap& map, const MazeWalls& walls);
  int height() const { return window_.height; }
  int width() const { return window_.width; }

  // Draw the robot at the last pose and a dot at each earlier pose. rgb: height() x width() x 3.
  void Draw(const std::vector<MazePose>& path, uint8_t* rgb) const;

 private:
  MazeWindow window_;
  std::vector<uint8_t> empty_;  // without the robot
};

// Stack of the last kFrames frames of kSide x kSide pixels. The paper (arXiv 1712.06567, "Image Hard Maze") does not
// specify their appearance; our choice is antialiased white walls on black, a gray disc for the goal, and a lighter
// disc for the robot with a black line from its center in the direction of its heading.
class MazeFrames {
 public:
  static constexpr int kSide = 84, kFrames = 4;

  MazeFrames(const MazeMap& map, const MazeWalls& walls);

  // Draw the frames of the last poses in order, zeros before the first pose. out: kSide x kSide x kFrames.
  void Draw(const std::vector<MazePose>& path, uint8_t* out) const;

 private:
  MazeWindow window_;
  std::vector<uint8_t> empty_;  // without the robot, kSide x kSide x kFrames
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_HARD_MAZE_PICTURE_H_
