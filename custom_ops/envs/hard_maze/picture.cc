#include "envs/hard_maze/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace neuroevo {
namespace {

using Color = std::array<uint8_t, 3>;
constexpr Color kFloor = {255, 255, 255}, kWall = {0, 0, 0}, kGoal = {40, 160, 60};
constexpr Color kPath = {90, 140, 230}, kBody = {210, 50, 40}, kNose = {255, 255, 255};
constexpr double kGrayWall = 255, kGrayGoal = 128, kGrayBody = 192;

constexpr int kScreenSide = 400;    // pixels of the longer side
constexpr double kMargin = 0.02;    // around a map, as a fraction of its longer side
constexpr double kNoseWidth = 2.5;  // width of the line that shows the robot's heading

// side: pixels of the longer side. square: whether both sides have this length.
MazeWindow WindowOf(const MazeMap& map, int side, bool square) {
  double left = std::min(map.start_x, map.goal_x), right = std::max(map.start_x, map.goal_x);
  double top = std::min(map.start_y, map.goal_y), bottom = std::max(map.start_y, map.goal_y);
  for (const MazeWall& wall : map.walls) {
    left = std::min({left, wall.x0, wall.x1}), right = std::max({right, wall.x0, wall.x1});
    top = std::min({top, wall.y0, wall.y1}), bottom = std::max({bottom, wall.y0, wall.y1});
  }
  const double longer = std::max(right - left, bottom - top), unit = side / ((1 + 2 * kMargin) * longer);
  // Even, as video encoders require.
  const auto pixels = [&](double length) {
    return square ? side : 2 * static_cast<int>(std::ceil((length + 2 * kMargin * longer) * unit / 2 - 1e-9));
  };
  const int height = pixels(bottom - top), width = pixels(right - left);
  return {height, width, (left + right - width / unit) / 2, (top + bottom - height / unit) / 2, unit};
}

double Distance(double x, double y) { return std::sqrt(x * x + y * y); }

// Call paint(pixel) for the window's pixels whose centers are less than radius away from a point.
template <class Paint>
void ForDisc(const MazeWindow& window, double x, double y, double radius, Paint paint) {
  const auto place = [&](double at, double zero, int size) {
    return static_cast<int>(std::clamp((at - zero) * window.unit, 0.0, static_cast<double>(size)));
  };
  const int first_column = place(x - radius, window.left, window.width);
  const int end_column = std::min(place(x + radius, window.left, window.width) + 1, window.width);
  const int end_row = std::min(place(y + radius, window.top, window.height) + 1, window.height);
  for (int row = place(y - radius, window.top, window.height); row < end_row; ++row) {
    for (int column = first_column; column < end_column; ++column) {
      const double away_x = window.x(column) - x, away_y = window.y(row) - y;
      if (Distance(away_x, away_y) < radius) paint(row * window.width + column, away_x, away_y);
    }
  }
}

// Return the distance of a point, relative to the robot's center, from the line that shows its heading.
double FromNose(const Direction& front, double x, double y) {
  const double along = std::clamp(x * front.x + y * front.y, 0.0, kRobotRadius);
  return Distance(x - along * front.x, y - along * front.y);
}

// Return the approximate fraction of a pixel inside a shape whose edge is `pixels` pixels beyond the pixel's center.
double Coverage(double pixels) { return std::clamp(pixels + 0.5, 0.0, 1.0); }

uint8_t Blend(double below, double above, double coverage) {
  return static_cast<uint8_t>(below + (above - below) * coverage + 0.5);
}

}  // namespace

MazeScreen::MazeScreen(const MazeMap& map, const MazeWalls& walls) : window_(WindowOf(map, kScreenSide, false)) {
  for (int row = 0; row < height(); ++row) {
    for (int column = 0; column < width(); ++column) {
      const double x = window_.x(column), y = window_.y(row);
      const bool wall = std::sqrt(walls.SquaredDistance(x, y)) * window_.unit < 1.5;  // 3 pixels wide
      const bool goal = Distance(x - map.goal_x, y - map.goal_y) < kGoalRadius;
      const Color& color = wall ? kWall : goal ? kGoal : kFloor;
      empty_.insert(empty_.end(), color.begin(), color.end());
    }
  }
}

void MazeScreen::Draw(const std::vector<MazePose>& path, uint8_t* rgb) const {
  std::copy(empty_.begin(), empty_.end(), rgb);
  for (const MazePose& pose : path) {
    ForDisc(window_, pose.x, pose.y, 1.5 / window_.unit,
            [&](int pixel, double, double) { std::copy(kPath.begin(), kPath.end(), rgb + 3 * pixel); });
  }
  const MazePose& last = path.back();
  const Direction front = DirectionOf(last.heading);
  ForDisc(window_, last.x, last.y, kRobotRadius, [&](int pixel, double x, double y) {
    const Color& color = FromNose(front, x, y) < kNoseWidth / 2 ? kNose : kBody;
    std::copy(color.begin(), color.end(), rgb + 3 * pixel);
  });
}

MazeFrames::MazeFrames(const MazeMap& map, const MazeWalls& walls) : window_(WindowOf(map, kSide, true)) {
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const double x = window_.x(column), y = window_.y(row);
      const double wall = Coverage(0.5 - std::sqrt(walls.SquaredDistance(x, y)) * window_.unit);  // a pixel wide
      const double goal = Coverage((kGoalRadius - Distance(x - map.goal_x, y - map.goal_y)) * window_.unit) * kGrayGoal;
      empty_.insert(empty_.end(), kFrames, Blend(goal, kGrayWall, wall));
    }
  }
}

void MazeFrames::Draw(const std::vector<MazePose>& path, uint8_t* out) const {
  std::copy(empty_.begin(), empty_.end(), out);
  const size_t frames = std::min<size_t>(path.size(), kFrames), missing = kFrames - frames;
  for (size_t i = 0; i < frames; ++i) {
    const MazePose& pose = path[path.size() - frames + i];
    const Direction front = DirectionOf(pose.heading);
    uint8_t* frame = out + missing + i;
    ForDisc(window_, pose.x, pose.y, kRobotRadius + 1 / window_.unit, [&](int pixel, double x, double y) {
      const double body = Coverage((kRobotRadius - Distance(x, y)) * window_.unit);
      const double nose = Coverage((kNoseWidth / 2 - FromNose(front, x, y)) * window_.unit);
      uint8_t& gray = frame[pixel * kFrames];
      gray = Blend(gray, kGrayBody * (1 - nose), body);
    });
  }
  if (missing == 0) return;
  for (int pixel = 0; pixel < kSide * kSide; ++pixel) std::memset(out + pixel * kFrames, 0, missing);
}

}  // namespace neuroevo
