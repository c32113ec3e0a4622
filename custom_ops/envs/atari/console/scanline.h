// A scanline of the television chip as sets of pixels, 160 bits for each object, so that many pixels are processed in
// parallel: two objects collide where both have a bit.
#ifndef NEUROEVO_ENVS_ATARI_CONSOLE_SCANLINE_H_
#define NEUROEVO_ENVS_ATARI_CONSOLE_SCANLINE_H_

#include <array>
#include <cstdint>

namespace neuroevo {

constexpr int kLineWidth = 160;                      // pixels, each a clock of the chip
constexpr int kLineClocks = 228, kBlankClocks = 68;  // clocks of a line, and of the part before its pixels

// The objects on a line; the values are bit indices in a set of objects.
enum TiaObject { kPlayer0, kMissile0, kPlayer1, kMissile1, kBall, kPlayfield, kTiaObjects };

// The objects in the order of their motion registers.
inline constexpr TiaObject kMotionOrder[5] = {kPlayer0, kPlayer1, kMissile0, kMissile1, kBall};

class LineBits {
 public:
  LineBits() = default;
  LineBits(uint64_t first, uint64_t second, uint64_t third) : words_{first, second, third} {}

  // Add a pattern of at most 32 bits, bit 0 leftmost, at pixel x, 0 <= x < 160, wrapping around at the line's end.
  // Words are not indexed dynamically, so that all three can stay in registers.
  void Add(uint32_t pattern, int x) {
    const int word = x / 64, shift = x % 64;
    const uint64_t low = uint64_t{pattern} << shift;
    const uint64_t high = shift > 32 ? uint64_t{pattern} >> (64 - shift) : 0;  // part in the next word
    words_[0] |= word == 0 ? low : 0;
    words_[1] |= word == 1 ? low : word == 0 ? high : 0;
    words_[2] |= word == 2 ? low : word == 1 ? high : 0;
    words_[0] |= words_[2] >> 32;
    words_[2] &= 0xffffffff;
  }

  uint64_t word(int i) const { return words_[i]; }

 private:
  uint64_t words_[3] = {0, 0, 0};  // the last one has 32
};

// Mask of the bits of words [i] that are in pixels [begin, end).
inline uint64_t LineWindow(int i, int begin, int end) {
  const int low = begin - 64 * i, high = end - 64 * i;
  if (high <= 0 || low >= 64) return 0;
  const uint64_t from = low <= 0 ? ~uint64_t{0} : ~uint64_t{0} << low;
  const uint64_t to = high >= 64 ? ~uint64_t{0} : ~(~uint64_t{0} << high);
  return from & to;
}

// Lookup tables indexed by byte.
struct ByteTables {
  std::array<uint8_t, 256> reversed{};
  std::array<uint16_t, 256> doubled{};     // each bit twice
  std::array<uint32_t, 256> quadrupled{};  // each bit four times
};
constexpr ByteTables MakeByteTables() {
  ByteTables tables;
  for (int byte = 0; byte < 256; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      if (!(byte >> bit & 1)) continue;
      tables.reversed[byte] |= static_cast<uint8_t>(0x80 >> bit);
      tables.doubled[byte] |= static_cast<uint16_t>(0x3 << 2 * bit);
      tables.quadrupled[byte] |= uint32_t{0xf} << 4 * bit;
    }
  }
  return tables;
}
inline constexpr ByteTables kByteTables = MakeByteTables();

// Offsets of a player's or missile's copies for each mode of NUSIZ; -1 after the last copy.
inline constexpr int8_t kCopies[8][4] = {{0, -1},     {0, 16, -1}, {0, 32, -1},     {0, 16, 32, -1},
                                         {0, 64, -1}, {0, -1},     {0, 32, 64, -1}, {0, -1}};

// Pixels of a player with the given graphics, leftmost pixel in the highest bit, at x in a mode of NUSIZ.
inline LineBits PlayerBits(uint8_t graphics, int x, int mode, bool without_first) {
  LineBits bits;
  const uint8_t pattern = kByteTables.reversed[graphics];
  if (mode == 5 || mode == 7) {  // double and quadruple width, shifted right by a pixel
    if (without_first) return bits;
    bits.Add(mode == 5 ? kByteTables.doubled[pattern] : kByteTables.quadrupled[pattern], (x + 1) % kLineWidth);
    return bits;
  }
  const int8_t* copies = kCopies[mode];
  for (int i = without_first ? 1 : 0; copies[i] >= 0; ++i) bits.Add(pattern, (x + copies[i]) % kLineWidth);
  return bits;
}

inline LineBits MissileBits(int x, int mode, int size) {  // 2^size pixels wide
  LineBits bits;
  for (const int8_t* copy = kCopies[mode]; *copy >= 0; ++copy)
    bits.Add((1u << (1 << size)) - 1, (x + *copy) % kLineWidth);
  return bits;
}

inline LineBits BallBits(int x, int size) {
  LineBits bits;
  bits.Add((1u << (1 << size)) - 1, x);
  return bits;
}

// Pixels of the playfield's 20 bits, PF2 highest and PF0's four lowest, on both halves of the line.
inline LineBits PlayfieldBits(uint32_t playfield, bool reflected) {
  const ByteTables& tables = kByteTables;
  // From left to right: PF0 from bit 4 of the register on, PF1 backward, PF2.
  const uint32_t left =
      (playfield & 0xf) | uint32_t{tables.reversed[playfield >> 4 & 0xff]} << 4 | (playfield >> 12 & 0xff) << 12;
  uint32_t right = left;
  if (reflected) {
    right = uint32_t{tables.reversed[left & 0xff]} << 12 | uint32_t{tables.reversed[left >> 8 & 0xff]} << 4 |
            tables.reversed[left >> 16] >> 4;
  }
  const uint64_t all = left | uint64_t{right} << 20;  // 40 bits, four pixels each
  const auto pixels = [&](int byte) { return uint64_t{tables.quadrupled[all >> 8 * byte & 0xff]}; };
  return LineBits(pixels(0) | pixels(1) << 32, pixels(2) | pixels(3) << 32, pixels(4));
}

// Collision latches, one for each pair of objects, in ALE's order.
struct CollisionLatch {
  TiaObject a, b;
};
inline constexpr CollisionLatch kCollisionLatches[15] = {
    {kMissile0, kPlayer1},   {kMissile0, kPlayer0}, {kMissile1, kPlayer0},   {kMissile1, kPlayer1},
    {kPlayer0, kPlayfield},  {kPlayer0, kBall},     {kPlayer1, kPlayfield},  {kPlayer1, kBall},
    {kMissile0, kPlayfield}, {kMissile0, kBall},    {kMissile1, kPlayfield}, {kMissile1, kBall},
    {kBall, kPlayfield},     {kPlayer0, kPlayer1},  {kMissile0, kMissile1}};
// Compute the latches that each set of objects can set.
constexpr std::array<uint16_t, 64> MakePossibleCollisions() {
  std::array<uint16_t, 64> possible{};
  for (int set = 0; set < 64; ++set) {
    for (int latch = 0; latch < 15; ++latch) {
      if (set >> kCollisionLatches[latch].a & set >> kCollisionLatches[latch].b & 1) possible[set] |= 1 << latch;
    }
  }
  return possible;
}
inline constexpr std::array<uint16_t, 64> kPossibleCollisions = MakePossibleCollisions();

// Return those of the `wanted` latches whose objects overlap in pixels [begin, end).
inline uint16_t Collisions(const LineBits* objects, uint16_t wanted, int begin, int end) {
  uint16_t found = 0;
  uint64_t window[3];
  for (int i = 0; i < 3; ++i) window[i] = LineWindow(i, begin, end);
  for (unsigned left = wanted; left != 0; left &= left - 1) {
    const int latch = __builtin_ctz(left);
    const LineBits &a = objects[kCollisionLatches[latch].a], &b = objects[kCollisionLatches[latch].b];
    const uint64_t shared =
        (a.word(0) & b.word(0) & window[0]) | (a.word(1) & b.word(1) & window[1]) | (a.word(2) & b.word(2) & window[2]);
    found |= static_cast<uint16_t>((shared != 0) << latch);
  }
  return found;
}

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_CONSOLE_SCANLINE_H_
