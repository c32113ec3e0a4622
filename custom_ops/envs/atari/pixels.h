// Vectorized drawing of a piece of a scanline as the Atari 2600's television chip does it. If several objects share a
// line, ALE draws pixel by pixel, up to a fifth of its time; Ale.cmake patches it to call this function instead.
#ifndef NEUROEVO_ENVS_ATARI_PIXELS_H_
#define NEUROEVO_ENVS_ATARI_PIXELS_H_

#include <cstdint>

#include "core/simd.h"

namespace neuroevo {

// A set of objects is a sum of these bits, which are the emulator's.
enum TiaBit : uint8_t { kPlayer0 = 1, kMissile0 = 2, kPlayer1 = 4, kMissile1 = 8, kBall = 16, kPlayfield = 32 };
constexpr int kObjectSets = 64;

// Piece of a scanline. A mask points to its value for the first pixel; a pixel has the object if mask & pattern is not
// 0.
struct TiaPiece {
  const uint32_t* playfield;
  const uint8_t *player_0, *player_1, *missile_0, *missile_1, *ball;
  uint32_t playfield_pattern;
  uint8_t player_0_pattern, player_1_pattern, missile_0_pattern, missile_1_pattern, ball_pattern;
  int left_pixels;  // number of leading pixels in the left half of the screen; may be any integer
};

// Collisions and colors of each set of objects.
struct TiaTables {
  const uint16_t* collisions;               // [64] as bits; 0 for the empty set
  const uint8_t *left_color, *right_color;  // [64]: index into colors, in the two halves of the screen
  const uint32_t* colors;                   // [4], of which only the lowest byte is used
};

// Write n pixels, the last in column 159 at most, and return all collisions in them.
inline uint16_t DrawPixels(const TiaPiece& piece, const TiaTables& tables, int n, uint8_t* pixels);

#if defined(NEUROEVO_AVX512) && defined(__AVX512BW__) && defined(__AVX512VL__)

inline uint16_t DrawPixels(const TiaPiece& piece, const TiaTables& tables, int n, uint8_t* pixels) {
  constexpr int kWords = 32;  // per vector; a pixel is a word, so that one permutation can index all 64 sets
  const auto load = [](const void* from) { return _mm512_loadu_si512(from); };
  const auto widen = [&](const uint8_t* from, int half) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + half));
  };
  const __m512i collisions_low = load(tables.collisions), collisions_high = load(tables.collisions + kWords);
  const __m512i left_low = widen(tables.left_color, 0), left_high = widen(tables.left_color, 1);
  const __m512i right_low = widen(tables.right_color, 0), right_high = widen(tables.right_color, 1);
  const __m512i colors = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tables.colors)));
  __m512i collided = _mm512_setzero_si512();
  for (int x = 0; x < n; x += kWords) {
    const __mmask32 here = n - x < kWords ? (1u << (n - x)) - 1 : ~0u;
    const auto add = [&](__m512i sets, const uint8_t* mask, uint8_t pattern, TiaBit bit) {
      const __m256i shown = _mm256_maskz_loadu_epi8(here, mask + x);
      const __mmask32 on = _mm256_test_epi8_mask(shown, _mm256_set1_epi8(static_cast<char>(pattern)));
      return _mm512_or_si512(sets, _mm512_maskz_set1_epi16(on, bit));
    };
    const auto playfield = [&](int first) {
      const __mmask16 loaded = static_cast<__mmask16>(here >> first);
      const __m512i shown = _mm512_maskz_loadu_epi32(loaded, piece.playfield + x + first);
      return _mm512_test_epi32_mask(shown, _mm512_set1_epi32(static_cast<int>(piece.playfield_pattern)));
    };
    const __mmask32 on = playfield(0) | static_cast<__mmask32>(playfield(16)) << 16;
    __m512i sets = _mm512_maskz_set1_epi16(on, kPlayfield);
    sets = add(sets, piece.player_0, piece.player_0_pattern, kPlayer0);
    sets = add(sets, piece.missile_0, piece.missile_0_pattern, kMissile0);
    sets = add(sets, piece.player_1, piece.player_1_pattern, kPlayer1);
    sets = add(sets, piece.missile_1, piece.missile_1_pattern, kMissile1);
    sets = add(sets, piece.ball, piece.ball_pattern, kBall);
    collided = _mm512_or_si512(collided, _mm512_permutex2var_epi16(collisions_low, sets, collisions_high));

    const int left_pixels = piece.left_pixels - x;
    const __mmask32 left = left_pixels <= 0 ? 0 : left_pixels < kWords ? (1u << left_pixels) - 1 : ~0u;
    const __m512i index = _mm512_mask_blend_epi16(left, _mm512_permutex2var_epi16(right_low, sets, right_high),
                                                  _mm512_permutex2var_epi16(left_low, sets, left_high));
    // A color is 4 bytes: the index of its lowest byte is four times its own.
    const __m512i color = _mm512_shuffle_epi8(colors, _mm512_slli_epi16(index, 2));
    _mm256_mask_storeu_epi8(pixels + x, here, _mm512_cvtepi16_epi8(color));
  }
  const uint32_t words = static_cast<uint32_t>(_mm512_reduce_or_epi32(collided));
  return static_cast<uint16_t>(words | words >> 16);
}

#else

inline uint16_t DrawPixels(const TiaPiece& piece, const TiaTables& tables, int n, uint8_t* pixels) {
  uint8_t sets[160];
  for (int x = 0; x < n; ++x) {  // without branches, for the compiler to vectorize
    const auto bit = [](uint32_t shown, TiaBit object) { return shown != 0 ? object : 0; };
    sets[x] = static_cast<uint8_t>(bit(piece.playfield[x] & piece.playfield_pattern, kPlayfield) |
                                   bit(piece.player_0[x] & piece.player_0_pattern, kPlayer0) |
                                   bit(piece.missile_0[x] & piece.missile_0_pattern, kMissile0) |
                                   bit(piece.player_1[x] & piece.player_1_pattern, kPlayer1) |
                                   bit(piece.missile_1[x] & piece.missile_1_pattern, kMissile1) |
                                   bit(piece.ball[x] & piece.ball_pattern, kBall));
  }
  uint16_t collided = 0;
  for (int x = 0; x < n; ++x) {
    const uint8_t* color = x < piece.left_pixels ? tables.left_color : tables.right_color;
    collided |= tables.collisions[sets[x]];
    pixels[x] = static_cast<uint8_t>(tables.colors[color[sets[x]]]);
  }
  return collided;
}

#endif

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_PIXELS_H_
