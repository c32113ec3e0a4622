// Sets of pixels, their collisions and colors against the chip's rules, evaluated pixel by pixel.
#include "envs/atari/console/scanline.h"

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "envs/atari/console/paint.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

using Line = std::array<bool, kLineWidth>;

Line PixelsIn(const LineBits& bits) {
  Line line{};
  for (int x = 0; x < kLineWidth; ++x) line[x] = bits.word(x / 64) >> x % 64 & 1;
  CHECK_EQ(bits.word(2) >> 32, 0u);
  return line;
}

// Where copies begin after the first: close, medium and wide ones are 16, 32 and 64 pixels away.
std::vector<int> Copies(int mode) {
  switch (mode) {
    case 1:
      return {0, 16};
    case 2:
      return {0, 32};
    case 3:
      return {0, 16, 32};
    case 4:
      return {0, 64};
    case 6:
      return {0, 32, 64};
    default:
      return {0};
  }
}

void Light(Line& line, int x) { line[x % kLineWidth] = true; }

}  // namespace

TEST(Players) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    const uint8_t graphics = static_cast<uint8_t>(random());
    const int x = random() % kLineWidth, mode = random() % 8;
    const bool without_first = random() % 4 == 0;
    Line expected{};
    for (int copy : Copies(mode)) {
      if (copy == 0 && without_first) continue;
      const int width = mode == 5 ? 2 : mode == 7 ? 4 : 1;  // of a pixel; wide players come a pixel later
      for (int p = 0; p < 8 * width; ++p) {
        if (graphics >> (7 - p / width) & 1) Light(expected, x + copy + p + (width > 1 ? 1 : 0));
      }
    }
    CHECK_EQ(PixelsIn(PlayerBits(graphics, x, mode, without_first)), expected);
  }
}

TEST(MissilesAndBalls) {
  for (int x = 0; x < kLineWidth; ++x) {
    for (int size = 0; size < 4; ++size) {
      for (int mode = 0; mode < 8; ++mode) {
        Line expected{};
        for (int copy : Copies(mode)) {
          for (int p = 0; p < 1 << size; ++p) Light(expected, x + copy + p);
        }
        CHECK_EQ(PixelsIn(MissileBits(x, mode, size)), expected);
        if (mode == 0) CHECK_EQ(PixelsIn(BallBits(x, size)), expected);
      }
    }
  }
}

TEST(Playfields) {
  std::mt19937 random(2);
  for (int round = 0; round < 5'000; ++round) {
    const uint8_t pf0 = static_cast<uint8_t>(random()), pf1 = static_cast<uint8_t>(random()),
                  pf2 = static_cast<uint8_t>(random());
    const bool reflected = random() % 2;
    std::array<bool, 20> half;  // PF0's high bits upward, PF1 downward, PF2 upward
    for (int i = 0; i < 4; ++i) half[i] = pf0 >> (4 + i) & 1;
    for (int i = 0; i < 8; ++i) half[4 + i] = pf1 >> (7 - i) & 1;
    for (int i = 0; i < 8; ++i) half[12 + i] = pf2 >> i & 1;
    Line expected{};
    for (int x = 0; x < kLineWidth; ++x) {
      const int i = x / 4;
      expected[x] = i < 20 ? half[i] : half[reflected ? 39 - i : i - 20];
    }
    const uint32_t registers = static_cast<uint32_t>(pf0 >> 4 | pf1 << 4 | pf2 << 12);
    CHECK_EQ(PixelsIn(PlayfieldBits(registers, reflected)), expected);
  }
}

TEST(CollisionsAndColors) {
  std::mt19937 random(3);
  for (int round = 0; round < 20'000; ++round) {
    LineBits bits[kTiaObjects];
    std::array<Line, kTiaObjects> lines;
    const unsigned set = random() % 64;
    for (int object = 0; object < kTiaObjects; ++object) {
      if (object == kPlayfield) {
        bits[object] = PlayfieldBits(random() & random() & 0xfffff, random() % 2);
      } else {
        bits[object] = PlayerBits(static_cast<uint8_t>(random()), random() % kLineWidth, random() % 8, false);
      }
      lines[object] = PixelsIn(bits[object]);
    }
    const int a = random() % (kLineWidth + 1), b = random() % (kLineWidth + 1), begin = std::min(a, b),
              end = std::max(a, b);
    const auto lit = [&](TiaObject object, int x) { return (set >> object & 1) && lines[object][x]; };

    const uint16_t wanted = kPossibleCollisions[set] & static_cast<uint16_t>(random());
    uint16_t expected = 0;
    for (int latch = 0; latch < 15; ++latch) {
      for (int x = begin; x < end && wanted >> latch & 1; ++x) {
        if (lit(kCollisionLatches[latch].a, x) && lit(kCollisionLatches[latch].b, x)) expected |= 1 << latch;
      }
    }
    CHECK_EQ(Collisions(bits, wanted, begin, end), expected);

    const bool first = random() % 2, score = random() % 2;
    const LineColors colors = {10, 20, 30, 40};
    std::array<uint8_t, kLineWidth> painted, colored;
    painted.fill(99);
    colored.fill(99);
    for (int x = begin; x < end; ++x) {
      const bool player0 = lit(kPlayer0, x) || lit(kMissile0, x), player1 = lit(kPlayer1, x) || lit(kMissile1, x);
      const bool playfield = lit(kPlayfield, x), ball = lit(kBall, x);
      const uint8_t of_score = x < kLineWidth / 2 ? colors.player0 : colors.player1;
      uint8_t color = colors.background;
      if (first && (playfield || ball)) {
        color = playfield && score && set == 1u << kPlayfield ? of_score : colors.playfield;
      } else if (player0) {
        color = colors.player0;
      } else if (playfield && score && of_score == colors.player0 && !first) {
        color = colors.player0;
      } else if (player1) {
        color = colors.player1;
      } else if (playfield) {
        color = score && !first ? of_score : colors.playfield;
      } else if (ball) {
        color = colors.playfield;
      }
      colored[x] = color;
    }
    Paint(bits, set, first, score, colors, begin, end, painted.data());
    CHECK_EQ(painted, colored);
  }
}
