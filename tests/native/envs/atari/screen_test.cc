// ScreenToFrame against a reference in double precision, and to the bit against its integer arithmetic pixel by pixel.
#include "envs/atari/screen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "native/check.h"

using namespace neuroevo;

namespace {

using Palette = std::array<uint32_t, 256>;

const int kHeights[] = {210, 214, 220, 230, 250};  // all that ALE's games have

Palette RandomPalette(std::mt19937* random) {
  Palette rgb;
  for (uint32_t& color : rgb) color = (*random)() & 0xffffff;
  return rgb;
}

// In thousandths of a gray level, so that halves are exact.
int GrayOf(uint32_t rgb) { return 299 * (rgb >> 16 & 255) + 587 * (rgb >> 8 & 255) + 114 * (rgb & 255); }

// [84, 84], not rounded.
std::vector<double> Reference(const Palette& rgb, int height, const std::vector<uint8_t>& a,
                              const std::vector<uint8_t>& b) {
  const auto pixel = [&](int y, int x) {
    const int i = std::min(y, height - 1) * kScreenWidth + std::min(x, kScreenWidth - 1);
    return std::max(GrayOf(rgb[a[i]]), GrayOf(rgb[b[i]])) / 1000.0;
  };
  std::vector<double> frame(kFramePixels);
  for (int y = 0; y < kFrameSide; ++y) {
    for (int x = 0; x < kFrameSide; ++x) {
      const double at_y = y * (height - 1) / 83.0, at_x = x * (kScreenWidth - 1) / 83.0;
      const int top = static_cast<int>(at_y), left = static_cast<int>(at_x);
      const double down = at_y - top, right = at_x - left;
      frame[y * kFrameSide + x] = (1 - down) * ((1 - right) * pixel(top, left) + right * pixel(top, left + 1)) +
                                  down * ((1 - right) * pixel(top + 1, left) + right * pixel(top + 1, left + 1));
    }
  }
  return frame;
}

// The arithmetic that every build must follow: greys in 1/128 levels, weights in 1/2^14, rows first, floors.
std::vector<uint8_t> Exact(const Palette& rgb, int height, const std::vector<uint8_t>& a,
                           const std::vector<uint8_t>& b) {
  const auto gray = [&](int y, int x) {
    const int i = std::min(y, height - 1) * kScreenWidth + std::min(x, kScreenWidth - 1);
    const auto level = [&](uint32_t c) {
      return std::lround((0.299 * (c >> 16 & 255) + 0.587 * (c >> 8 & 255) + 0.114 * (c & 255)) * 128);
    };
    return std::max(level(rgb[a[i]]), level(rgb[b[i]]));
  };
  const auto blend = [](int64_t low, int64_t high, int64_t weight) {
    const int64_t product = (high - low) * weight;
    return low + (product - ((product % 16384 + 16384) % 16384)) / 16384;
  };
  std::vector<uint8_t> frame(kFramePixels);
  for (int y = 0; y < kFrameSide; ++y) {
    for (int x = 0; x < kFrameSide; ++x) {
      const double at_y = static_cast<double>(y) * (height - 1) / 83, at_x = static_cast<double>(x) * 159 / 83;
      const int top = static_cast<int>(at_y), left = static_cast<int>(at_x);
      const int64_t down = std::lround((at_y - top) * 16384), right = std::lround((at_x - left) * 16384);
      const int64_t a_column = blend(gray(top, left), gray(top + 1, left), down);
      const int64_t next_column = blend(gray(top, left + 1), gray(top + 1, left + 1), down);
      frame[y * kFrameSide + x] = static_cast<uint8_t>((blend(a_column, next_column, right) + 64) / 128);
    }
  }
  return frame;
}

void CheckFrame(const Palette& rgb, int height, const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  std::vector<uint8_t> frame(kFramePixels);
  ScreenToFrame(rgb, height).Convert(a.data(), b.data(), ChangedRows(height, 1), frame.data());
  CHECK_EQ(frame, Exact(rgb, height, a, b));
  const std::vector<double> expected = Reference(rgb, height, a, b);
  int different = 0;
  for (int i = 0; i < kFramePixels; ++i) {
    CHECK(std::abs(frame[i] - expected[i]) < 0.55);
    const int64_t difference = std::abs(frame[i] - std::lround(expected[i]));
    CHECK(difference <= 1);
    different += static_cast<int>(difference);
  }
  CHECK(different < kFramePixels / 20);  // only what is within a hundredth or two of a half may round the other way
}

}  // namespace

TEST(RandomScreens) {
  std::mt19937 random(1);
  for (int height : kHeights) {
    for (int run = 0; run < 3; ++run) {
      const Palette rgb = RandomPalette(&random);
      std::vector<uint8_t> a(height * kScreenWidth), b(a.size());
      for (size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<uint8_t>(random());
        // As in a game, most of the screen stays from one frame to the next.
        b[i] = random() % 4 == 0 ? static_cast<uint8_t>(random()) : a[i];
      }
      CheckFrame(rgb, height, a, b);
      CheckFrame(rgb, height, b, a);
      CheckFrame(rgb, height, a, a);
    }
  }
}

TEST(ExtremeScreens) {
  // Black and white in turn: the largest differences that the integer arithmetic meets.
  Palette rgb{};
  rgb[1] = 0xffffff;
  for (int height : {1, 2, 84, 210, 250, 300}) {
    std::vector<uint8_t> stripes(height * kScreenWidth), board(stripes.size()), black(stripes.size());
    for (size_t i = 0; i < stripes.size(); ++i) {
      stripes[i] = i / kScreenWidth % 2;
      board[i] = (i / kScreenWidth + i % kScreenWidth) % 2;
    }
    CheckFrame(rgb, height, stripes, black);
    CheckFrame(rgb, height, black, board);
    CheckFrame(rgb, height, stripes, board);
  }
}

TEST(ConstantScreensAreExact) {
  std::mt19937 random(2);
  Palette rgb = RandomPalette(&random);
  rgb[0] = 0;
  rgb[1] = 0xffffff;
  for (uint32_t& color : rgb) {
    // A gray is kept in 1/128 levels: one that is less than 1/256 below a half counts as the half and rounds up. No
    // color of ALE's palettes is of that kind.
    while (GrayOf(color) % 1000 >= 496 && GrayOf(color) % 1000 < 500) ++color;
  }
  for (int height : kHeights) {
    const ScreenToFrame screen_to_frame(rgb, height);
    for (int i = 0; i < 256; ++i) {
      const std::vector<uint8_t> screen(height * kScreenWidth, static_cast<uint8_t>(i));
      const std::vector<uint8_t> expected(kFramePixels, static_cast<uint8_t>((GrayOf(rgb[i]) + 500) / 1000));
      std::vector<uint8_t> frame(kFramePixels);
      screen_to_frame.Convert(screen.data(), screen.data(), ChangedRows(height, 1), frame.data());
      CHECK_EQ(frame, expected);
    }
  }
}

TEST(CornersAreTheScreens) {
  // Aligned corners: the frame's corner pixels are the screen's.
  Palette rgb{};
  for (int i = 0; i < 256; ++i) rgb[i] = 0x010101 * i;
  for (int height : kHeights) {
    std::vector<uint8_t> screen(height * kScreenWidth, 100), black(screen.size(), 0);
    screen.front() = 1;
    screen[kScreenWidth - 1] = 50;
    screen[(height - 1) * kScreenWidth] = 200;
    screen.back() = 255;
    std::vector<uint8_t> frame(kFramePixels);
    ScreenToFrame(rgb, height).Convert(screen.data(), black.data(), ChangedRows(height, 1), frame.data());
    CHECK_EQ(frame.front(), 1);
    CHECK_EQ(frame[kFrameSide - 1], 50);
    CHECK_EQ(frame[kFramePixels - kFrameSide], 200);
    CHECK_EQ(frame.back(), 255);
  }
}
