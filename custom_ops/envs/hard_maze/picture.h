// Pictures of a maze from above: a screen in colors for people, and frames in gray for networks. x goes to the right,
// y down, as in the paper's figures.
#ifndef NEUROEVO_ENVS_HARD_MAZE_PICTURE_H_
#define NEUROEVO_ENVS_HARD_MAZE_PICTURE_H_

#include <cstdint>
#include <vector>

#include "envs/hard_maze/map.h"
#include "envs/hard_maze/robot.h"

namespace neuroevo {

// What of the plane a picture shows: all of a map, and a margin around it.
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

  // The robot at the last of its poses, and a dot at each earlier one. rgb: height() x width() x 3.
  void Draw(const std::vector<MazePose>& path, uint8_t* rgb) const;

 private:
  MazeWindow window_;
  std::vector<uint8_t> empty_;  // without the robot
};

// The last kFrames frames of kSide x kSide pixels. The paper says no more of them (arXiv 1712.06567, "Image Hard
// Maze"): that walls are white on black with soft edges, the goal is a gray disc, and the robot a lighter one with a
// black line from its center to where it looks, is our choice.
class MazeFrames {
 public:
  static constexpr int kSide = 84, kFrames = 4;

  MazeFrames(const MazeMap& map, const MazeWalls& walls);

  // Those of the last poses, in their order; zeros before the first one. out: kSide x kSide x kFrames.
  void Draw(const std::vector<MazePose>& path, uint8_t* out) const;

 private:
  MazeWindow window_;
  std::vector<uint8_t> empty_;  // without the robot, kSide x kSide x kFrames
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_HARD_MAZE_PICTURE_H_
