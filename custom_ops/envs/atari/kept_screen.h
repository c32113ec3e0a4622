// A screen that a frame was made of, and which of its rows have changed since: a frame's rows that are made of others
// need not be made again. From a step to the next a tenth of a screen's rows change in a quiet game, half in a busy
// one.
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

  // Takes over another screen, and sets what says of its rows whether they have changed.
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
