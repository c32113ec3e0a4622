// Copy of the screen from which a frame was computed, for detecting changed rows: the frame's rows that depend only on
// unchanged rows need not be recomputed. Per step a tenth of a screen's rows change in a quiet game, half in a busy
// game.
#ifndef NEUROEVO_ENVS_ATARI_KEPT_SCREEN_H_
#define NEUROEVO_ENVS_ATARI_KEPT_SCREEN_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "envs/atari/screen.h"

namespace neuroevo {

class KeptScreen {
 public:
  explicit KeptScreen(int height) : pixels_(static_cast<size_t>(height) * kScreenWidth) {}

  const uint8_t* pixels() const { return pixels_.data(); }  // [height, 160]

  // Copy a new screen and set `changed` for each of its rows.
  void Take(const uint8_t* screen, ChangedRows* changed) {
    uint8_t* kept = pixels_.data();
    for (uint8_t& row_changed : *changed) {
      if (Differ(kept, screen)) {
        std::memcpy(kept, screen, kScreenWidth);
        row_changed = 1;
      }
      kept += kScreenWidth;
      screen += kScreenWidth;
    }
  }

 private:
  static bool Differ(const uint8_t* a, const uint8_t* b) {
    constexpr int kWords = kScreenWidth / 8;
    uint64_t words_a[kWords], words_b[kWords], difference = 0;
    std::memcpy(words_a, a, kScreenWidth);
    std::memcpy(words_b, b, kScreenWidth);
    for (int i = 0; i < kWords; ++i) difference |= words_a[i] ^ words_b[i];
    return difference != 0;
  }

  std::vector<uint8_t> pixels_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_KEPT_SCREEN_H_
