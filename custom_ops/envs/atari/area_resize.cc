#include "envs/atari/area_resize.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace neuroevo {
namespace {

constexpr double kSliver = 1e-3;  // OpenCV ignores smaller parts of a pixel

}  // namespace

bool AreaTap::HasPartIn(const ChangedRows& changed) const {
  const auto begin = changed.begin() + first;
  return std::any_of(begin, begin + static_cast<int>(weights.size()), [](uint8_t row) { return row != 0; });
}

AreaResize::AreaResize(int height) : rows_(AreaTaps(height, kFrameSide)) {
  const std::vector<AreaTap> columns = AreaTaps(kScreenWidth, kFrameSide);
  for (int x = 0; x < kFrameSide; ++x) {
    const AreaTap& tap = columns[x];
    const int used = static_cast<int>(tap.weights.size());
    if (used > kColumnTaps) ThrowInvalid("column ", x, " averages ", used, " pixels, expected at most ", kColumnTaps);
    // At the right edge the taps without weight come first, so as not to read past the row.
    first_column_[x] = std::min(tap.first, kScreenWidth - kColumnTaps);
    for (int i = 0; i < used; ++i) column_weights_[tap.first - first_column_[x] + i][x] = tap.weights[i];
  }
}

// Output pixel `out` covers [low, high) of the input; a pixel's weight is the part of it that is covered over the
// length covered. The scale is the reciprocal of a ratio, not the ratio, because that rounds as OpenCV does.
std::vector<AreaTap> AreaTaps(int in, int out_size) {
  if (in < out_size) ThrowInvalid("cannot shrink ", in, " pixels to ", out_size);
  const double scale = 1.0 / (static_cast<double>(out_size) / in);
  std::vector<AreaTap> taps(out_size);
  for (int out = 0; out < out_size; ++out) {
    const double low = out * scale, high = low + scale, length = std::min(scale, in - low);
    const int last = std::min(static_cast<int>(std::floor(high)), in - 1);  // the pixel that high lies in
    const int whole = std::min(static_cast<int>(std::ceil(low)), last);     // the first pixel covered from its start
    AreaTap& tap = taps[out];
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

// Floats are added in OpenCV's order: along a row first, left to right, then down, with each product rounded.
void AreaResize::ResizeRow(const uint8_t* row, float* line) const {
  for (int x = 0; x < kFrameSide; ++x) {
    const uint8_t* in = row + first_column_[x];
    line[x] = in[0] * column_weights_[0][x] + in[1] * column_weights_[1][x] + in[2] * column_weights_[2][x];
  }
}

void AreaResize::Convert(const uint8_t* gray, const ChangedRows& changed, uint8_t* frame) const {
  float line[kFrameSide], sum[kFrameSide];
  int in_line = -1;  // input row of `line`; neighboring output rows share an input row
  for (int y = 0; y < kFrameSide; ++y) {
    const AreaTap& tap = rows_[y];
    if (!tap.HasPartIn(changed)) continue;
    std::fill_n(sum, kFrameSide, 0.0f);
    for (size_t i = 0; i < tap.weights.size(); ++i) {
      const int row = tap.first + static_cast<int>(i);
      if (row != in_line) ResizeRow(gray + row * kScreenWidth, line);
      in_line = row;
      for (int x = 0; x < kFrameSide; ++x) sum[x] += tap.weights[i] * line[x];
    }
    // Halves round to even.
    for (int x = 0; x < kFrameSide; ++x) {
      frame[y * kFrameSide + x] = static_cast<uint8_t>(std::min(std::rint(sum[x]), 255.0f));
    }
  }
}

void AreaResizeTo::Convert(const uint8_t* plane, const ChangedRows& changed, uint8_t* frame) const {
  const int side = static_cast<int>(columns_.size());
  std::vector<float> line(side), sum(side);
  for (int y = 0; y < side; ++y, frame += side) {
    if (!rows_[y].HasPartIn(changed)) continue;
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (size_t i = 0; i < rows_[y].weights.size(); ++i) {
      const uint8_t* row = plane + (rows_[y].first + static_cast<int>(i)) * kScreenWidth;
      for (int x = 0; x < side; ++x) {
        const AreaTap& tap = columns_[x];
        line[x] = 0;
        for (size_t k = 0; k < tap.weights.size(); ++k) line[x] += row[tap.first + k] * tap.weights[k];
      }
      for (int x = 0; x < side; ++x) sum[x] += rows_[y].weights[i] * line[x];
    }
    for (int x = 0; x < side; ++x) frame[x] = static_cast<uint8_t>(std::min(std::rint(sum[x]), 255.0f));
  }
}

}  // namespace neuroevo
