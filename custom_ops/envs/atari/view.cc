#include "envs/atari/view.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "envs/atari/area_resize.h"
#include "envs/atari/kept_screen.h"
#include "envs/atari/screen.h"

namespace neuroevo {
namespace {

// View of the emulator's last two screens at the end of a step.
class UberView : public AtariView {
 public:
  UberView(std::shared_ptr<const ScreenToFrame> screen_to_frame, int height)
      : screen_to_frame_(std::move(screen_to_frame)), before_(height), last_(height), changed_(height, 1) {}

  void Write(const AtariEmulator& emulator, uint8_t* frame) override {
    before_.Take(emulator.previous_screen(), &changed_);
    last_.Take(emulator.screen(), &changed_);
    screen_to_frame_->Convert(before_.pixels(), last_.pixels(), changed_, frame_.data());
    std::fill(changed_.begin(), changed_.end(), 0);
    std::copy(frame_.begin(), frame_.end(), frame);
  }

 private:
  std::shared_ptr<const ScreenToFrame> screen_to_frame_;
  KeptScreen before_, last_;
  ChangedRows changed_;
  std::array<uint8_t, kFramePixels> frame_;
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
    // As in ALE's getScreenGrayscale: a color's index is even and the next entry is its gray. A PAL game loses its
    // color if a frame has an odd number of lines: then the index is odd, and ALE's gray is the next color's blue.
    // After the palette's end follows ALE's next palette, which starts with black.
    for (int i = 0; i < 255; ++i) levels[0][i] = static_cast<uint8_t>(palette[i + 1] & 255);
    levels[0][255] = 0;
  }
  int frame_skip, height, side;
  std::vector<std::array<uint8_t, 256>> levels;  // for each plane, the level of each color index
  AreaResize resize;
  AreaResizeTo resize_to;
};

// View of two screen buffers, the last and the previous screen, with their maximum stored in the last. A step that ends
// early leaves one or both unchanged; the last frame of an episode is computed from both.
class GymnasiumView : public AtariView {
 public:
  explicit GymnasiumView(std::shared_ptr<const GymnasiumTables> tables)
      : tables_(std::move(tables)),
        last_(tables_->height),
        before_(tables_->height),
        changed_(tables_->height, 1),
        shown_(Pixels() * tables_->levels.size()),
        frame_(tables_->levels.size() * tables_->side * tables_->side) {}

  void AfterReset(const AtariEmulator& emulator) override {
    last_.Take(emulator.screen(), &changed_);
    last_taken_ = before_is_black_ = true;
    ChangeAll();
  }

  void AfterFrame(const AtariEmulator& emulator, int index) override {
    if (index == tables_->frame_skip - 2) {
      before_.Take(emulator.screen(), &changed_);
      if (std::exchange(before_is_black_, false) == true) ChangeAll();
    }
    if (index == tables_->frame_skip - 1) {
      last_.Take(emulator.screen(), &changed_);
      last_taken_ = true;
    }
  }

  void Write(const AtariEmulator&, uint8_t* frame) override {
    // The shown screen replaces the last one until another is taken, which happens at the next reset in this case.
    const bool last_taken = std::exchange(last_taken_, false);
    const int side = tables_->side;
    for (size_t plane = 0; plane < tables_->levels.size(); ++plane) {
      const std::array<uint8_t, 256>& level = tables_->levels[plane];
      uint8_t* shown = shown_.data() + plane * Pixels();
      for (int y = 0; y < tables_->height; ++y) {
        if (changed_[y]) Show(level, y, last_taken, shown + y * kScreenWidth);
      }
      uint8_t* to = frame_.data() + plane * side * side;
      side == kFrameSide ? tables_->resize.Convert(shown, changed_, to)
                         : tables_->resize_to.Convert(shown, changed_, to);
    }
    std::copy(frame_.begin(), frame_.end(), frame);
    std::fill(changed_.begin(), changed_.end(), 0);
  }

 private:
  size_t Pixels() const { return static_cast<size_t>(tables_->height) * kScreenWidth; }
  void ChangeAll() { std::fill(changed_.begin(), changed_.end(), 1); }

  void Show(const std::array<uint8_t, 256>& level, int y, bool last_taken, uint8_t* shown) const {
    const uint8_t *last = last_.pixels() + y * kScreenWidth, *before = before_.pixels() + y * kScreenWidth;
    if (last_taken) {
      for (int x = 0; x < kScreenWidth; ++x) shown[x] = level[last[x]];
    }
    if (before_is_black_ || (last_taken && std::equal(last, last + kScreenWidth, before))) return;
    for (int x = 0; x < kScreenWidth; ++x) shown[x] = std::max(shown[x], level[before[x]]);
  }

  std::shared_ptr<const GymnasiumTables> tables_;
  KeptScreen last_, before_;
  bool last_taken_ = false;      // since the last frame was written
  bool before_is_black_ = true;  // since a reset, until a screen is taken
  ChangedRows changed_;
  std::vector<uint8_t> shown_;  // [planes, height, 160]
  std::vector<uint8_t> frame_;  // [planes, side, side]
};

}  // namespace

AtariViewFactory MakeAtariViewFactory(const AtariOptions& options, const AtariEmulator& emulator) {
  const std::array<uint32_t, 256> palette = emulator.Palette();
  if (options.protocol == AtariProtocol::kUber) {
    auto screen_to_frame = std::make_shared<const ScreenToFrame>(palette, emulator.height());
    return
        [screen_to_frame, height = emulator.height()] { return std::make_unique<UberView>(screen_to_frame, height); };
  }
  auto tables = std::make_shared<const GymnasiumTables>(options, palette, emulator.height());
  return [tables] { return std::make_unique<GymnasiumView>(tables); };
}

}  // namespace neuroevo
