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
  GymnasiumTables(int skip, const std::array<uint32_t, 256>& palette, int rows)
      : frame_skip(skip), height(rows), resize(rows) {
    // As ALE's getScreenGrayscale: a color's index is even and the next entry is its gray. A PAL game loses its color
    // where a frame has an odd number of lines: then the index is odd, and ALE's gray is the next color's blue. What
    // is behind the palette's end is ALE's next palette, which begins with black.
    for (int i = 0; i < 255; ++i) gray[i] = static_cast<uint8_t>(palette[i + 1] & 255);
    gray[255] = 0;
  }
  int frame_skip, height;
  AreaResize resize;
  std::array<uint8_t, 256> gray;
};

// Two buffers of gray screens, the last and the one before. A step that ends early leaves one or both as they were, and
// the maximum is taken in place; the last frame of an episode shows both.
class GymnasiumView : public AtariView {
 public:
  explicit GymnasiumView(std::shared_ptr<const GymnasiumTables> tables)
      : tables_(std::move(tables)), last_(tables_->height * kScreenWidth), before_(last_.size()) {}

  void AfterReset(const AtariEmulator& emulator) override {
    Gray(emulator, &last_);
    std::fill(before_.begin(), before_.end(), 0);
  }

  void AfterFrame(const AtariEmulator& emulator, int index) override {
    if (index == tables_->frame_skip - 2) Gray(emulator, &before_);
    if (index == tables_->frame_skip - 1) Gray(emulator, &last_);
  }

  void Write(const AtariEmulator&, uint8_t* frame) override {
    if (tables_->frame_skip > 1) {
      for (size_t i = 0; i < last_.size(); ++i) last_[i] = std::max(last_[i], before_[i]);
    }
    tables_->resize.Convert(last_.data(), frame);
  }

 private:
  void Gray(const AtariEmulator& emulator, std::vector<uint8_t>* out) const {
    const uint8_t* screen = emulator.screen();
    for (size_t i = 0; i < out->size(); ++i) (*out)[i] = tables_->gray[screen[i]];
  }

  std::shared_ptr<const GymnasiumTables> tables_;
  std::vector<uint8_t> last_, before_;  // [height, 160]
};

}  // namespace

AtariViewFactory MakeAtariViewFactory(const AtariOptions& options, const AtariEmulator& emulator) {
  const std::array<uint32_t, 256> palette = emulator.Palette();
  if (options.protocol == AtariProtocol::kUber) {
    auto screen_to_frame = std::make_shared<const ScreenToFrame>(palette, emulator.height());
    return [screen_to_frame] { return std::make_unique<UberView>(screen_to_frame); };
  }
  auto tables = std::make_shared<const GymnasiumTables>(options.frame_skip, palette, emulator.height());
  return [tables] { return std::make_unique<GymnasiumView>(tables); };
}

}  // namespace neuroevo
