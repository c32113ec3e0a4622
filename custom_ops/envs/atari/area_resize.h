// Area-averaging resize of a grayscale screen to 84x84, bit-identical to OpenCV's resize with INTER_AREA, which
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

// Return the tap of each of `out` pixels when shrinking `in` >= out pixels.
std::vector<AreaTap> AreaTaps(int in, int out);

// Resize from [height, 160] to [side, side]. Output rows that depend on no changed row are left unchanged.
class AreaResizeTo {
 public:
  AreaResizeTo(int height, int side) : rows_(AreaTaps(height, side)), columns_(AreaTaps(kScreenWidth, side)) {}
  void Convert(const uint8_t* plane, const ChangedRows& changed, uint8_t* frame) const;

 private:
  std::vector<AreaTap> rows_, columns_;
};

// Faster resize to 84x84.
class AreaResize {
 public:
  // height: rows of the screen, more than 84.
  explicit AreaResize(int height);

  // gray: screen [height, 160]; frame: [84, 84].
  void Convert(const uint8_t* gray, const ChangedRows& changed, uint8_t* frame) const;

 private:
  // A pixel covers fewer than 2 of 160 columns, so it touches at most 3. If it touches 2, the third has weight 0.
  static constexpr int kColumnTaps = 3;
  void ResizeRow(const uint8_t* row, float* line) const;

  std::vector<AreaTap> rows_;
  std::array<int, kFrameSide> first_column_;
  std::array<std::array<float, kFrameSide>, kColumnTaps> column_weights_{};
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_AREA_RESIZE_H_
