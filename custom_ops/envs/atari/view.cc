#include "envs/atari/view.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "envs/atari/area_resize.h"
#include "envs/atari/screen.h"

namespace neuroevo {
namespace {

// The last two frames as they are in the emulator at the end of a step.
class UberView : public AtariView {
 public:
  explicit UberView(std::shared_ptr<const ScreenToFrame> screen_to_frame)
      : screen_to_frame_(std::move(screen_to_frame)) {}

  void Write(const AtariEmulator& emulator, uint8_t* frame) override {
    screen_to_frame_->Convert(emulator.previous_screen(), emulator.screen(), frame);
  }

 private:
  std::shared_ptr<const ScreenToFrame> screen_to_frame_;
};

struct GymnasiumTables {
  GymnasiumTables(const AtariOptions& options, const std::array<uint32_t, 256>& palette, int rows)
      : frame_skip(options.frame_skip),
        height(rows),
        side(options.screen_size),
        levels(options.planes()),
        resize(rows),
        resize_to(rows, side) {
    for (int plane = 0; plane < 3 && !options.grayscale; ++plane) {
      for (int i = 0; i < 256; ++i) levels[plane][i] = static_cast<uint8_t>(palette[i] >> (16 - 8 * plane));
    }
    if (!options.grayscale) return;
    // As ALE's getScreenGrayscale: a color's index is even and the next entry is its gray. A PAL game loses its color
    // where a frame has an odd number of lines: then the index is odd, and ALE's gray is the next color's blue. What
    // is behind the palette's end is ALE's next palette, which begins with black.
    for (int i = 0; i < 255; ++i) levels[0][i] = static_cast<uint8_t>(palette[i + 1] & 255);
    levels[0][255] = 0;
  }
  int frame_skip, height, side;
  std::vector<std::array<uint8_t, 256>> levels;  // of each plane: what becomes of a color's index
  AreaResize resize;
  AreaResizeTo resize_to;
};

// Two buffers of screens, the last and the one before. A step that ends early leaves one or both as they were, and
// the maximum is taken in place; the last frame of an episode shows both.
class GymnasiumView : public AtariView {
 public:
  explicit GymnasiumView(std::shared_ptr<const GymnasiumTables> tables)
      : tables_(std::move(tables)), last_(Pixels() * tables_->levels.size()), before_(last_.size()) {}

  void AfterReset(const AtariEmulator& emulator) override {
    Take(emulator, &last_);
    std::fill(before_.begin(), before_.end(), 0);
  }

  void AfterFrame(const AtariEmulator& emulator, int index) override {
    if (index == tables_->frame_skip - 2) Take(emulator, &before_);
    if (index == tables_->frame_skip - 1) Take(emulator, &last_);
  }

  void Write(const AtariEmulator&, uint8_t* frame) override {
    if (tables_->frame_skip > 1) {
      for (size_t i = 0; i < last_.size(); ++i) last_[i] = std::max(last_[i], before_[i]);
    }
    const int side = tables_->side;
    for (size_t plane = 0; plane < tables_->levels.size(); ++plane) {
      const uint8_t* from = last_.data() + plane * Pixels();
      uint8_t* to = frame + plane * side * side;
      side == kFrameSide ? tables_->resize.Convert(from, to) : tables_->resize_to.Convert(from, to);
    }
  }

 private:
  size_t Pixels() const { return static_cast<size_t>(tables_->height) * kScreenWidth; }

  void Take(const AtariEmulator& emulator, std::vector<uint8_t>* out) const {
    const uint8_t* screen = emulator.screen();
    uint8_t* to = out->data();
    for (const std::array<uint8_t, 256>& level : tables_->levels) {
      for (size_t i = 0; i < Pixels(); ++i) *to++ = level[screen[i]];
    }
  }

  std::shared_ptr<const GymnasiumTables> tables_;
  std::vector<uint8_t> last_, before_;  // [planes, height, 160]
};

}  // namespace

AtariViewFactory MakeAtariViewFactory(const AtariOptions& options, const AtariEmulator& emulator) {
  const std::array<uint32_t, 256> palette = emulator.Palette();
  if (options.protocol == AtariProtocol::kUber) {
    auto screen_to_frame = std::make_shared<const ScreenToFrame>(palette, emulator.height());
    return [screen_to_frame] { return std::make_unique<UberView>(screen_to_frame); };
  }
  auto tables = std::make_shared<const GymnasiumTables>(options, palette, emulator.height());
  return [tables] { return std::make_unique<GymnasiumView>(tables); };
}

}  // namespace neuroevo
