// AreaResize against a reference in double precision. That it equals OpenCV to the bit is tested from Python.
#include "envs/atari/area_resize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "native/check.h"

using namespace neuroevo;

namespace {

const int kHeights[] = {210, 214, 220, 230, 250};  // all that ALE's games have

// How much of [low, high) lies in pixel i.
double Covered(double low, double high, int i) {
  return std::max(0.0, std::min(high, i + 1.0) - std::max(low, i * 1.0));
}

// [84, 84], not rounded: the mean over the area that an output pixel covers.
std::vector<double> Reference(const std::vector<uint8_t>& gray, int height) {
  std::vector<double> frame(kFramePixels);
  const double scale_y = height / 84.0, scale_x = kScreenWidth / 84.0;
  for (int y = 0; y < kFrameSide; ++y) {
    for (int x = 0; x < kFrameSide; ++x) {
      double sum = 0;
      for (int in_y = y * height / 84; in_y < height && in_y < (y + 1) * scale_y; ++in_y) {
        for (int in_x = x * kScreenWidth / 84; in_x < kScreenWidth && in_x < (x + 1) * scale_x; ++in_x) {
          sum += gray[in_y * kScreenWidth + in_x] * Covered(y * scale_y, (y + 1) * scale_y, in_y) *
                 Covered(x * scale_x, (x + 1) * scale_x, in_x);
        }
      }
      frame[y * kFrameSide + x] = sum / (scale_y * scale_x);
    }
  }
  return frame;
}

}  // namespace

TEST(RandomScreens) {
  std::mt19937 random(1);
  for (int height : kHeights) {
    std::vector<uint8_t> gray(height * kScreenWidth);
    for (int run = 0; run < 3; ++run) {
      for (uint8_t& pixel : gray) pixel = run < 2 ? static_cast<uint8_t>(random()) : random() % 2 * 255;
      std::vector<uint8_t> frame(kFramePixels);
      AreaResize(height).Convert(gray.data(), ChangedRows(height, 1), frame.data());
      const std::vector<double> expected = Reference(gray, height);
      for (int i = 0; i < kFramePixels; ++i) CHECK(std::abs(frame[i] - expected[i]) < 0.501);
    }
  }
}

TEST(ConstantScreensAreExact) {
  for (int height : kHeights) {
    const AreaResize resize(height);
    for (int level = 0; level < 256; ++level) {
      const std::vector<uint8_t> gray(height * kScreenWidth, static_cast<uint8_t>(level));
      std::vector<uint8_t> frame(kFramePixels);
      resize.Convert(gray.data(), ChangedRows(height, 1), frame.data());
      CHECK(frame == std::vector<uint8_t>(kFramePixels, static_cast<uint8_t>(level)));
    }
  }
}

TEST(OnlyShrinks) {
  CHECK_THROWS(AreaResize(83), "cannot shrink 83 pixels to 84");
  CHECK_THROWS(AreaResize(0), "cannot shrink 0 pixels to 84");
}
