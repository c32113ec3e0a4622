#include "envs/atari_screen.h"

#include <algorithm>
#include <cmath>

namespace neuroevo {
namespace {

constexpr int kGreyBits = 7;     // 255 * 2^7 fits 15 bits, so a difference of greys fits 16
constexpr int kWeightBits = 14;  // grey * weight fits 31 bits

}  // namespace

ScreenToFrame::ScreenToFrame(const std::array<uint32_t, 256>& rgb, int height)
    : height_(height), rows_(Taps(height)), columns_(Taps(kScreenWidth)) {
  for (int i = 0; i < 256; ++i) {
    const double grey = 0.299 * (rgb[i] >> 16 & 255) + 0.587 * (rgb[i] >> 8 & 255) + 0.114 * (rgb[i] & 255);
    grey_[i] = static_cast<uint16_t>(std::lround(grey * (1 << kGreyBits)));
  }
}

std::vector<ScreenToFrame::Tap> ScreenToFrame::Taps(int in) {
  std::vector<Tap> taps(kFrameSide);
  for (int out = 0; out < kFrameSide; ++out) {
    // Aligned corners: the first and last pixel of input and output coincide.
    const double at = static_cast<double>(out) * (in - 1) / (kFrameSide - 1);
    const int low = std::min(static_cast<int>(at), in - 1);
    taps[out] = {low, low + 1 < in ? 1 : 0, static_cast<int>(std::lround((at - low) * (1 << kWeightBits)))};
  }
  return taps;
}

void ScreenToFrame::Convert(const uint8_t* a, const uint8_t* b, uint8_t* frame) const {
  // Almost every screen row is needed by some output row, most by one: two rows of greys are kept and reused.
  int32_t grey[2][kScreenWidth];
  int row_of[2] = {-1, -1};
  auto grey_row = [&](int row) -> const int32_t* {
    int32_t* out = grey[row & 1];
    if (row_of[row & 1] != row) {
      row_of[row & 1] = row;
      const uint8_t* in_a = a + row * kScreenWidth;
      const uint8_t* in_b = b + row * kScreenWidth;
      for (int x = 0; x < kScreenWidth; ++x) out[x] = std::max(grey_[in_a[x]], grey_[in_b[x]]);
    }
    return out;
  };
  for (int y = 0; y < kFrameSide; ++y) {
    const Tap& tap = rows_[y];
    const int32_t* top = grey_row(tap.low);
    const int32_t* bottom = grey_row(tap.low + tap.step);
    int32_t line[kScreenWidth];
    for (int x = 0; x < kScreenWidth; ++x) {
      line[x] = top[x] + (((bottom[x] - top[x]) * tap.weight) >> kWeightBits);
    }
    for (int x = 0; x < kFrameSide; ++x) {
      const Tap& column = columns_[x];
      const int32_t left = line[column.low];
      const int32_t right = line[column.low + column.step];
      const int32_t value = left + (((right - left) * column.weight) >> kWeightBits);
      frame[y * kFrameSide + x] = static_cast<uint8_t>((value + (1 << (kGreyBits - 1))) >> kGreyBits);
    }
  }
}

}  // namespace neuroevo
