// From a gray screen to 84x84 by area averaging, to the same bits as OpenCV's resize with INTER_AREA, which is what
// gymnasium.wrappers.AtariPreprocessing uses.
#ifndef NEUROEVO_ENVS_ATARI_AREA_RESIZE_H_
#define NEUROEVO_ENVS_ATARI_AREA_RESIZE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "envs/atari/screen.h"

namespace neuroevo {

// An output pixel is the sum of in[first + i] * weights[i].
struct AreaTap {
  int first;
  std::vector<float> weights;
  bool HasPartIn(const ChangedRows& changed) const;
};

// Of each of `out` pixels that `in` >= out pixels are shrunk to.
std::vector<AreaTap> AreaTaps(int in, int out);

// To any size: [height, 160] to [side, side]. Rows of the frame stay as they are that no changed row has a part in.
class AreaResizeTo {
 public:
  AreaResizeTo(int height, int side) : rows_(AreaTaps(height, side)), columns_(AreaTaps(kScreenWidth, side)) {}
  void Convert(const uint8_t* plane, const ChangedRows& changed, uint8_t* frame) const;

 private:
  std::vector<AreaTap> rows_, columns_;
};

// The same to 84x84, quicker.
class AreaResize {
 public:
  // height: rows of the screen, more than 84.
  explicit AreaResize(int height);

  // gray: screen [height, 160]; frame: [84, 84].
  void Convert(const uint8_t* gray, const ChangedRows& changed, uint8_t* frame) const;

 private:
  // 160 columns are less than 2 to a pixel, so a pixel touches at most 3. Those that touch 2 get one of weight 0.
  static constexpr int kColumnTaps = 3;
  void ResizeRow(const uint8_t* row, float* line) const;

  std::vector<AreaTap> rows_;
  std::array<int, kFrameSide> first_column_;
  std::array<std::array<float, kFrameSide>, kColumnTaps> column_weights_{};
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_AREA_RESIZE_H_
