#include "envs/atari/area_resize.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace neuroevo {
namespace {

constexpr double kSliver = 1e-3;  // OpenCV leaves out a part of a pixel that is not larger

}  // namespace

AreaResize::AreaResize(int height) : rows_(Taps(height)) {
  const std::vector<Tap> columns = Taps(kScreenWidth);
  for (int x = 0; x < kFrameSide; ++x) {
    const Tap& tap = columns[x];
    const int used = static_cast<int>(tap.weights.size());
    if (used > kColumnTaps) ThrowInvalid("column ", x, " averages ", used, " pixels, expected at most ", kColumnTaps);
    // At the right edge the taps without weight come first, so as not to read past the row.
    first_column_[x] = std::min(tap.first, kScreenWidth - kColumnTaps);
    for (int i = 0; i < used; ++i) column_weights_[tap.first - first_column_[x] + i][x] = tap.weights[i];
  }
}

// Output pixel `out` covers [low, high) of the input; a pixel's weight is the part of it that is covered over the
// length covered. The scale is the reciprocal of a ratio, not the ratio, because that rounds as OpenCV does.
std::vector<AreaResize::Tap> AreaResize::Taps(int in) {
  if (in <= kFrameSide) ThrowInvalid("cannot shrink ", in, " pixels to ", kFrameSide);
  const double scale = 1.0 / (static_cast<double>(kFrameSide) / in);
  std::vector<Tap> taps(kFrameSide);
  for (int out = 0; out < kFrameSide; ++out) {
    const double low = out * scale, high = low + scale, length = std::min(scale, in - low);
    const int last = std::min(static_cast<int>(std::floor(high)), in - 1);  // the pixel that high lies in
    const int whole = std::min(static_cast<int>(std::ceil(low)), last);     // the first pixel covered from its start
    Tap& tap = taps[out];
    tap.first = whole;
    if (whole - low > kSliver) {
      tap.first = whole - 1;
      tap.weights.push_back(static_cast<float>((whole - low) / length));
    }
    tap.weights.insert(tap.weights.end(), last - whole, static_cast<float>(1.0 / length));
    if (high - last > kSliver) {
      tap.weights.push_back(static_cast<float>(std::min({high - last, 1.0, length}) / length));
    }
  }
  return taps;
}

// Floats are added in OpenCV's order: along a row first, left to right, then down, each product rounded on its own.
void AreaResize::ResizeRow(const uint8_t* row, float* line) const {
  for (int x = 0; x < kFrameSide; ++x) {
    const uint8_t* in = row + first_column_[x];
    line[x] = in[0] * column_weights_[0][x] + in[1] * column_weights_[1][x] + in[2] * column_weights_[2][x];
  }
}

void AreaResize::Convert(const uint8_t* gray, uint8_t* frame) const {
  float line[kFrameSide], sum[kFrameSide];
  int in_line = -1;  // the row that `line` is of; neighboring output rows share one
  for (int y = 0; y < kFrameSide; ++y) {
    std::fill_n(sum, kFrameSide, 0.0f);
    const Tap& tap = rows_[y];
    for (size_t i = 0; i < tap.weights.size(); ++i) {
      const int row = tap.first + static_cast<int>(i);
      if (row != in_line) ResizeRow(gray + row * kScreenWidth, line);
      in_line = row;
      for (int x = 0; x < kFrameSide; ++x) sum[x] += tap.weights[i] * line[x];
    }
    // Halves go to the even neighbor.
    for (int x = 0; x < kFrameSide; ++x) {
      frame[y * kFrameSide + x] = static_cast<uint8_t>(std::min(std::rint(sum[x]), 255.0f));
    }
  }
}

}  // namespace neuroevo
