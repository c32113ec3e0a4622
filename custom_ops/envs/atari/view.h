// Observations of the two protocols: one frame at the reset and after every step, by default 84x84 and grayscale.
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

  // Called after a reset, and after frame `index` of a step unless the frame ended the episode.
  virtual void AfterReset(const AtariEmulator&) {}
  virtual void AfterFrame(const AtariEmulator&, int /*index*/) {}

  // Write the frame [planes, side, side]; called at the end of a reset or a step.
  virtual void Write(const AtariEmulator& emulator, uint8_t* frame) = 0;
};

// Factory of the views of one pool, which share their tables. uber: see screen.h. gymnasium: like
// gymnasium.wrappers.AtariPreprocessing of Gymnasium 1.3.0.
using AtariViewFactory = std::function<std::unique_ptr<AtariView>()>;
AtariViewFactory MakeAtariViewFactory(const AtariOptions& options, const AtariEmulator& emulator);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_VIEW_H_
