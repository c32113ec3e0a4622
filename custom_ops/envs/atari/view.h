// What a protocol shows of the emulator: one frame at the reset and after every step, 84x84 and gray unless options say
// otherwise.
#ifndef NEUROEVO_ENVS_ATARI_VIEW_H_
#define NEUROEVO_ENVS_ATARI_VIEW_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "envs/atari/emulator.h"

namespace neuroevo {

class AtariView {
 public:
  virtual ~AtariView() = default;

  // After a reset, and after frame `index` of a step unless it ended the episode.
  virtual void AfterReset(const AtariEmulator&) {}
  virtual void AfterFrame(const AtariEmulator&, int /*index*/) {}

  // At the end of a reset or a step: writes the frame [planes, side, side].
  virtual void Write(const AtariEmulator& emulator, uint8_t* frame) = 0;
};

// Makes the views of one pool, which share their tables. uber: see screen.h. gymnasium: as
// gymnasium.wrappers.AtariPreprocessing of Gymnasium 1.3.0.
using AtariViewFactory = std::function<std::unique_ptr<AtariView>()>;
AtariViewFactory MakeAtariViewFactory(const AtariOptions& options, const AtariEmulator& emulator);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_VIEW_H_
