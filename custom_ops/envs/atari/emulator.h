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
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "envs/atari/console/tia.h"
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
  // stays over. The screen of a frame that is not drawn costs time only if it is asked for.
  double Act(ale::Action action, bool draws);

  static constexpr int kRamBytes = 128;
  void ReadRam(uint8_t* out) const;  // the console's memory

  ale::ALEInterface& ale() const { return *ale_; }
  int height() const { return static_cast<int>(ale_->getScreen().height()); }  // of a screen [height, 160]

  std::array<uint32_t, 256> Palette() const;  // 0x00RRGGBB for each palette index

  // The screens of the last two frames, palette indices [height, 160].
  const uint8_t* screen() const {
    FinishScreens();
    return media().currentFrameBuffer();
  }
  const uint8_t* previous_screen() const {
    FinishScreens();
    return media().previousFrameBuffer();
  }

 private:
  // What ALE's TIA::save, and so cloneState, leaves out: whether a frame is unfinished and where its next pixel goes
  // (after loading, Q*bert and Tetris are in the middle of one), and the masks that place objects on the screen.
  using AleTiaState = std::tuple<bool, bool, uint8_t*, const uint8_t*, const uint8_t*, const uint8_t*, const uint8_t*,
                                 const uint8_t*, const uint32_t*>;

  ale::stella::TIA& tia() const { return ale_->theOSystem->console().system().tia(); }
  ale::stella::MediaSource& media() const { return ale_->theOSystem->console().mediaSource(); }
  void FinishScreens() const {
    if (tia_ != nullptr) tia_->FinishScreens();
  }

  std::unique_ptr<ale::ALEInterface> ale_;
  Tia* tia_ = nullptr;  // ours, or none
  float repeat_action_probability_;
  ale::ALEState start_;
  // What a game's settings save is not all that they have: Chopper Command forgets whether it has begun, and Miniature
  // Golf loads its numbers as others than it saved.
  std::unique_ptr<const ale::RomSettings> start_settings_;
  // Of our chip, and of ALE's.
  Tia::Snapshot start_snapshot_;
  std::optional<AleTiaState> start_tia_;
  ptrdiff_t start_pixel_ = 0;
  std::vector<uint8_t> start_screen_, start_previous_screen_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_EMULATOR_H_
