// DrawPixels against the chip's rules, evaluated pixel by pixel.
#include "envs/atari/pixels.h"

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "native/check.h"

using namespace neuroevo;

namespace {

constexpr int kLine = 160;

struct Line {
  explicit Line(std::mt19937* random) {
    const auto byte = [random] { return static_cast<uint8_t>((*random)()); };
    for (uint32_t& mask : playfield) mask = 1u << (*random)() % 20;
    for (auto* mask : {&player_0, &player_1}) {
      for (uint8_t& value : *mask) value = (*random)() % 2 ? 0 : static_cast<uint8_t>(1u << (*random)() % 8);
    }
    for (auto* mask : {&missile_0, &missile_1, &ball}) {
      for (uint8_t& value : *mask) value = (*random)() % 3 == 0;
    }
    for (uint16_t& collision : collisions) collision = static_cast<uint16_t>(1u << (*random)() % 16);
    collisions[0] = 0;
    for (auto* color : {&left_color, &right_color}) {
      for (uint8_t& index : *color) index = (*random)() % 4;
    }
    for (uint32_t& color : colors) color = (*random)();
    playfield_pattern = (*random)() & 0xfffff;
    patterns = {byte(), byte()};
    for (size_t i = 2; i < patterns.size(); ++i) patterns[i] = (*random)() % 2 ? 0xff : 0;
  }

  TiaPiece Piece(int first) const {
    return {&playfield[first], &player_0[first],  &player_1[first], &missile_0[first], &missile_1[first],
            &ball[first],      playfield_pattern, patterns[0],      patterns[1],       patterns[2],
            patterns[3],       patterns[4],       kLine / 2 - first};
  }
  TiaTables Tables() const { return {collisions.data(), left_color.data(), right_color.data(), colors.data()}; }

  int Set(int x) const {
    int set = 0;
    if (playfield[x] & playfield_pattern) set |= kPlayfield;
    if (player_0[x] & patterns[0]) set |= kPlayer0;
    if (player_1[x] & patterns[1]) set |= kPlayer1;
    if (missile_0[x] & patterns[2]) set |= kMissile0;
    if (missile_1[x] & patterns[3]) set |= kMissile1;
    if (ball[x] & patterns[4]) set |= kBall;
    return set;
  }

  std::array<uint32_t, kLine> playfield;
  std::array<uint8_t, kLine> player_0, player_1, missile_0, missile_1, ball;
  std::array<uint16_t, kObjectSets> collisions;
  std::array<uint8_t, kObjectSets> left_color, right_color;
  std::array<uint32_t, 4> colors;
  uint32_t playfield_pattern;
  std::array<uint8_t, 5> patterns;
};

void CheckPiece(const Line& line, int first, int n) {
  constexpr uint8_t kUntouched = 0xa5;
  std::vector<uint8_t> pixels(kLine + 64, kUntouched), expected = pixels;
  uint16_t collided = 0;
  for (int x = first; x < first + n; ++x) {
    const int set = line.Set(x);
    collided |= line.collisions[set];
    const auto& color = x < kLine / 2 ? line.left_color : line.right_color;
    expected[x] = static_cast<uint8_t>(line.colors[color[set]]);
  }
  // Masks end with the line: a sanitizer sees a read behind it.
  CHECK_EQ(DrawPixels(line.Piece(first), line.Tables(), n, pixels.data() + first), collided);
  CHECK_EQ(pixels, expected);
}

}  // namespace

TEST(EveryPieceOfALine) {
  std::mt19937 random(1);
  const Line line(&random);
  for (int first = 0; first < kLine; ++first) {
    for (int n = 1; first + n <= kLine; ++n) CheckPiece(line, first, n);
  }
}

TEST(RandomLines) {
  std::mt19937 random(2);
  for (int run = 0; run < 5000; ++run) {
    const Line line(&random);
    const int first = static_cast<int>(random() % kLine);
    CheckPiece(line, first, 1 + static_cast<int>(random() % (kLine - first)));
  }
}

TEST(EverySetOfObjects) {
  std::mt19937 random(3);
  Line line(&random);
  line.playfield_pattern = 1;
  line.patterns.fill(1);
  for (int set = 0; set < kObjectSets; ++set) {
    line.playfield.fill(set & kPlayfield ? 1 : 0);
    line.player_0.fill(set & kPlayer0 ? 1 : 0);
    line.player_1.fill(set & kPlayer1 ? 1 : 0);
    line.missile_0.fill(set & kMissile0 ? 1 : 0);
    line.missile_1.fill(set & kMissile1 ? 1 : 0);
    line.ball.fill(set & kBall ? 1 : 0);
    CHECK_EQ(line.Set(7), set);
    CheckPiece(line, 0, kLine);
  }
}
