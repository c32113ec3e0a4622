// One emulator of the Arcade Learning Environment with a game in it, which can be put back to its start.
#ifndef NEUROEVO_ENVS_ATARI_EMULATOR_H_
#define NEUROEVO_ENVS_ATARI_EMULATOR_H_

#include <ale/ale_interface.hpp>
#include <ale/emucore/System.hxx>
#include <ale/emucore/TIA.hxx>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "envs/atari/options.h"

namespace neuroevo {

class AtariEmulator {
 public:
  // Loads the game. Throws for a file that is no game's ROM and for a mode or difficulty that the game lacks.
  explicit AtariEmulator(const AtariOptions& options);

  // Back to the start, a snapshot taken after loading: in ale-py 0.12.1 reset_game draws from a running generator and
  // RAM carries over, so that repeated resets differ. ALE's generator of sticky actions starts from random_seed.
  void Restart(uint32_t random_seed);

  // One frame with a legal action, as ALEInterface::act plays it, without the copies of screen, memory and sound that
  // nothing here reads: ALE's getScreen, getRAM and getAudio stay as they were. Returns the reward; a game that is over
  // stays over.
  double Act(ale::Action action);

  static constexpr int kRamBytes = 128;
  void ReadRam(uint8_t* out) const;  // the console's memory

  ale::ALEInterface& ale() const { return *ale_; }
  int height() const { return static_cast<int>(ale_->getScreen().height()); }  // of a screen [height, 160]

  std::array<uint32_t, 256> Palette() const;  // 0x00RRGGBB for each palette index

  // The screens of the last two frames, palette indices [height, 160].
  const uint8_t* screen() const { return media().currentFrameBuffer(); }
  const uint8_t* previous_screen() const { return media().previousFrameBuffer(); }

 private:
  using TIA = ale::stella::TIA;
  // What TIA::save, and so cloneState, leaves out: whether a frame is unfinished and where its next pixel goes (after
  // loading, Q*bert and Tetris are in the middle of one), and the masks that place objects on the screen.
  using TiaState = std::tuple<bool, bool, uint8_t*, const uint8_t*, const uint8_t*, const uint8_t*, const uint8_t*,
                              const uint8_t*, const uint32_t*>;

  TIA& tia() const { return ale_->theOSystem->console().system().tia(); }
  ale::stella::MediaSource& media() const { return ale_->theOSystem->console().mediaSource(); }

  std::unique_ptr<ale::ALEInterface> ale_;
  float repeat_action_probability_;
  ale::ALEState start_;
  TiaState start_tia_;
  ptrdiff_t start_pixel_;
  std::vector<uint8_t> start_screen_, start_previous_screen_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_EMULATOR_H_
