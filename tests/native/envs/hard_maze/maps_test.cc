// Maps and options of the hard maze.
#include <string>
#include <utility>
#include <vector>

#include "envs/hard_maze/map.h"
#include "native/check.h"
#include "native/envs/hard_maze/mazes.h"

using namespace neuroevo;

TEST(BadOptions) {
  const std::string hard = MapFile("hard");
  CHECK_THROWS(Mazes({}), "hard_maze needs the option map=FILE");
  CHECK_THROWS(Mazes({{"map", hard}, {"protocol", "stanley"}}),
               "hard_maze option protocol is 'stanley', expected one of: lehman, uber");
  CHECK_THROWS(Mazes({{"map", hard}, {"observation", "sonar"}}), "'sonar', expected one of: sensors, image");
  CHECK_THROWS(Mazes({{"map", hard}, {"max_episode_steps", "0"}}), "'0', expected an integer in [1, 100000]");
  CHECK_THROWS(Mazes({{"map", hard}, {"noise", "1"}}),
               "hard_maze has no option 'noise', expected one of: map, protocol");
}

TEST(BadMaps) {
  CHECK_THROWS(ReadMazeMap("/nowhere/a.txt"), "maze /nowhere/a.txt cannot be opened");
  CHECK_THROWS(ReadMazeMap("/tmp"), "maze /tmp cannot be read");
  const std::string start = "start 0 0\n", heading = "heading 0\n", goal = "goal 9 9\n", wall = "wall 20 0 20 9\n";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", " has no line 'start'"},
      {start + heading + wall, " has no line 'goal'"},
      {start + goal + wall, " has no line 'heading'"},
      {start + heading + goal, " has no line 'wall'"},
      {start + "\n# wall\n  walls 1 2 3 4", " line 4 has 'walls', expected start, heading, goal or wall"},
      {"start 0", " line 1 has 1 values of 'start', expected 2"},
      {"wall 1 2 3 4 5", " line 1 has 5 values of 'wall', expected 4"},
      {"start 0 1e7", " line 1 has '1e7' in 'start', expected a number in [-1e+06, 1e+06]"},
      {"goal nan 0", " line 1 has 'nan' in 'goal', expected a number"},
      {"goal 3,5 0", " line 1 has '3,5' in 'goal', expected a number"},
      {"heading 361", " line 1 has '361' in 'heading', expected a number in [0, 360]"},
      {"heading -1", " line 1 has '-1' in 'heading'"},
      {"wall 1 2 1 2", " line 1 has a wall of length 0, expected at least 1e-06"},
      {"wall 0 0 0 1e-200", " line 1 has a wall of length 1e-200, expected at least 1e-06"},
      {start + start, " line 2 has a second 'start', expected one"},
  };
  for (const auto& [text, message] : bad) {
    const TemporaryMap map(text);
    CHECK_THROWS(ReadMazeMap(map.name()), "maze " + map.name() + message);
  }
  const TemporaryMap near(start + heading + goal + "wall 5 -9 5 9\n");
  CHECK_THROWS(Mazes({{"map", near.name()}}),
               "the start of maze " + near.name() + " is 5 from a wall, expected at least 8, the robot's radius");
  std::string many = start + heading + goal;
  for (int i = 0; i <= 10'000; ++i) many += wall;
  const TemporaryMap large(many);
  CHECK_THROWS(ReadMazeMap(large.name()), " line 10004 has too many walls, expected at most 10000");
}

TEST(MapsMayHaveCommentsAndAnyOrder) {
  const TemporaryMap file("# A maze\nwall 1.5 -2 3e1 4 # the only wall\r\n\n  goal 7 8\nheading 360\n\tstart -50 6\n");
  const MazeMap map = ReadMazeMap(file.name());
  CHECK(map.start_x == -50 && map.start_y == 6 && map.heading == 360 && map.goal_x == 7 && map.goal_y == 8);
  CHECK_EQ(map.walls.size(), 1);
  CHECK(map.walls[0].x0 == 1.5 && map.walls[0].y0 == -2 && map.walls[0].x1 == 30 && map.walls[0].y1 == 4);
}
