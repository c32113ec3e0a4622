// Conversion of two screens of palette indices to an 84x84 grayscale frame: grayscale, pixel-wise maximum, bilinear
// resize with aligned corners, rounding; as in the protocol of arXiv 1712.06567 (whose 2018 code keeps floats without
// rounding).
#ifndef NEUROEVO_ENVS_ATARI_SCREEN_H_
#define NEUROEVO_ENVS_ATARI_SCREEN_H_

#include <array>
#include <cstdint>
#include <vector>

namespace neuroevo {

constexpr int kScreenWidth = 160;
constexpr int kFrameSide = 84;
constexpr int kFramePixels = kFrameSide * kFrameSide;

// [height]: nonzero for the rows of a screen that have changed since the last frame was computed.
using ChangedRows = std::vector<uint8_t>;

class ScreenToFrame {
 public:
  // rgb: 0x00RRGGBB for each of the 256 palette indices. height: rows of the screen.
  ScreenToFrame(const std::array<uint32_t, 256>& rgb, int height);

  // a, b: screens [height, 160]; frame: [84, 84], whose rows that depend on no changed row are left unchanged. Integer
  // arithmetic, so that all builds give identical pixels; within half a gray level of the real-valued result, plus
  // rounding.
  void Convert(const uint8_t* a, const uint8_t* b, const ChangedRows& changed, uint8_t* frame) const;

 private:
  struct Tap {      // output = in[low] + (in[low + step] - in[low]) * weight / 2^kWeightBits
    int low, step;  // step is 0 for the last row or column, which has no neighbor
    int weight;
  };
  static std::vector<Tap> Taps(int in);

  std::array<int16_t, 256> gray_;  // in 1/128 gray levels
  std::vector<Tap> rows_;
  // The columns' taps, padded for vectors: entries after the last column read column 0 and are not stored.
  static constexpr int kPaddedSide = 96;
  std::array<int16_t, kPaddedSide> left_{}, right_{}, column_weight_{};
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_SCREEN_H_
