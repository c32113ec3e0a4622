// Coloring of a scanline's pixels, up to 64 per iteration, from the sets of pixels of its objects.
#ifndef NEUROEVO_ENVS_ATARI_CONSOLE_PAINT_H_
#define NEUROEVO_ENVS_ATARI_CONSOLE_PAINT_H_

#include <cstdint>
#include <cstring>

#include "core/simd.h"
#include "envs/atari/console/scanline.h"

namespace neuroevo {

struct LineColors {
  uint8_t background, playfield, player0, player1;
};

// Disjoint sets of at most 64 pixels that have these colors; all other pixels are background.
struct ColoredPixels {
  uint64_t playfield, player0, player1;
};

#if defined(__AVX512BW__)

inline void Store(const ColoredPixels& pixels, const LineColors& colors, uint64_t window, uint8_t* at) {
  const auto all = [](uint8_t color) { return _mm512_set1_epi8(static_cast<char>(color)); };
  __m512i bytes = all(colors.background);
  bytes = _mm512_mask_mov_epi8(bytes, pixels.playfield, all(colors.playfield));
  bytes = _mm512_mask_mov_epi8(bytes, pixels.player0, all(colors.player0));
  bytes = _mm512_mask_mov_epi8(bytes, pixels.player1, all(colors.player1));
  _mm512_mask_storeu_epi8(at, window, bytes);
}

#elif defined(NEUROEVO_AVX2)

// Bits 0 to 31 as bytes of ones or zeros.
inline __m256i BytesOf(uint32_t bits) {
  const __m256i byte_of_bit = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), byte_of_bit);
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
}

inline void Store(const ColoredPixels& pixels, const LineColors& colors, uint64_t window, uint8_t* at) {
  for (int half = 0; half < 64; half += 32, at += 32) {
    const uint32_t wanted = static_cast<uint32_t>(window >> half);
    if (wanted == 0) continue;
    const auto paint = [half](__m256i below, uint64_t where, uint8_t color) {
      const uint32_t bits = static_cast<uint32_t>(where >> half);
      return bits == 0 ? below : _mm256_blendv_epi8(below, _mm256_set1_epi8(static_cast<char>(color)), BytesOf(bits));
    };
    __m256i bytes = _mm256_set1_epi8(static_cast<char>(colors.background));
    bytes = paint(bytes, pixels.playfield, colors.playfield);
    bytes = paint(bytes, pixels.player0, colors.player0);
    bytes = paint(bytes, pixels.player1, colors.player1);
    __m256i* const to = reinterpret_cast<__m256i*>(at);
    if (wanted != 0xffffffff) bytes = _mm256_blendv_epi8(_mm256_loadu_si256(to), bytes, BytesOf(wanted));
    _mm256_storeu_si256(to, bytes);
  }
}

#else

inline void Store(const ColoredPixels& pixels, const LineColors& colors, uint64_t window, uint8_t* at) {
  constexpr uint64_t kEach = 0x0101010101010101;
  const auto bytes_of = [](uint64_t bits) {  // the lowest eight
    const uint64_t spread = (bits & 0xff) * kEach & 0x8040201008040201;
    return (((spread + 0x7f7f7f7f7f7f7f7f) | spread) >> 7 & kEach) * 0xff;
  };
  for (int group = 0; group < 64; group += 8, at += 8) {
    if ((window >> group & 0xff) == 0) continue;
    uint64_t bytes = colors.background * kEach;
    const auto paint = [&](uint64_t with, uint64_t where) { bytes = (bytes & ~where) | (with & where); };
    paint(colors.playfield * kEach, bytes_of(pixels.playfield >> group));
    paint(colors.player0 * kEach, bytes_of(pixels.player0 >> group));
    paint(colors.player1 * kEach, bytes_of(pixels.player1 >> group));
    uint64_t before;
    std::memcpy(&before, at, sizeof(before));
    paint(before, ~bytes_of(window >> group));
    std::memcpy(at, &bytes, sizeof(bytes));
  }
}

#endif

// Paint pixels [begin, end) of a line with the objects of a set. The objects in front, the players or the playfield and
// the ball, hide the others. A score is a playfield in the players' colors; as in ALE, a playfield in front of other
// objects is not a score.
inline void Paint(const LineBits* objects, unsigned set, bool playfield_first, bool score, const LineColors& colors,
                  int begin, int end, uint8_t* line) {
  constexpr uint64_t kLeftHalf[3] = {~uint64_t{0}, 0xffff, 0};
  if (set == 1u << kPlayfield && score) playfield_first = false;
  for (int word = begin / 64; word * 64 < end; ++word) {
    const auto of = [&](TiaObject object) { return set >> object & 1 ? objects[object].word(word) : 0; };
    const uint64_t playfield = of(kPlayfield), ball = of(kBall);
    ColoredPixels pixels = {playfield | ball, of(kPlayer0) | of(kMissile0), of(kPlayer1) | of(kMissile1)};
    if (playfield_first) {
      pixels.player0 &= ~pixels.playfield;
      pixels.player1 &= ~(pixels.playfield | pixels.player0);
    } else {
      if (score) {  // the playfield has the left or right player's color and is behind that player
        pixels.playfield = ball & ~playfield;
        pixels.player0 |= playfield & kLeftHalf[word];
        pixels.player1 |= playfield & ~kLeftHalf[word];
      }
      pixels.player1 &= ~pixels.player0;
      pixels.playfield &= ~(pixels.player0 | pixels.player1);
    }
    Store(pixels, colors, LineWindow(word, begin, end), line + word * 64);
  }
}

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_CONSOLE_PAINT_H_
