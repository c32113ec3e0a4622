// Emulator of the Arcade Learning Environment with a loaded game, which can be restored to its start state.
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

#include "core/hash.h"
#include "envs/atari/console/tia.h"
#include "envs/atari/options.h"

namespace neuroevo {

class AtariEmulator {
 public:
  // Load the game. Throws for a file that is not a game's ROM and for an unsupported mode or difficulty.
  explicit AtariEmulator(const AtariOptions& options);

  // Restore the start state, a snapshot taken after loading: in ale-py 0.12.1 reset_game draws from a running generator
  // and RAM carries over, so that repeated resets differ. random_seed seeds ALE's generator of sticky actions.
  void Restart(uint32_t random_seed);

  // Emulate one frame with a legal action like ALEInterface::act, but without the unused copies of screen, RAM and
  // sound: ALE's getScreen, getRAM and getAudio are not updated. Returns the reward; a finished game stays finished.
  // The screen of a frame that is not drawn is computed only on request.
  double Act(ale::Action action, bool draws);

  // Add to the hash all that later frames depend on without sticky actions. Returns false within a frame, for games of
  // which ALE does not save the whole state. Requires our chips.
  bool AddState(Hash128* hash) const;

  static constexpr int kRamBytes = 128;
  void ReadRam(uint8_t* out) const;  // the console's memory

  ale::ALEInterface& ale() const { return *ale_; }
  int height() const { return static_cast<int>(ale_->getScreen().height()); }  // rows of a screen [height, 160]

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
  // State omitted by ALE's TIA::save, and so by cloneState: whether a frame is unfinished and the address of its next
  // pixel (after loading, Q*bert and Tetris are within a frame), and the masks that place objects on the screen.
  using AleTiaState = std::tuple<bool, bool, uint8_t*, const uint8_t*, const uint8_t*, const uint8_t*, const uint8_t*,
                                 const uint8_t*, const uint32_t*>;

  ale::stella::TIA& tia() const { return ale_->theOSystem->console().system().tia(); }
  ale::stella::MediaSource& media() const { return ale_->theOSystem->console().mediaSource(); }
  void FinishScreens() const {
    if (tia_ != nullptr) tia_->FinishScreens();
  }

  std::unique_ptr<ale::ALEInterface> ale_;
  Tia* tia_ = nullptr;  // our television chip, or null with ALE's
  float repeat_action_probability_;
  ale::ALEState start_;
  // A copy, because the saved state of a game's settings is incomplete: Chopper Command omits whether it has started,
  // and Miniature Golf loads values other than those it saved.
  std::unique_ptr<const ale::RomSettings> start_settings_;
  // Snapshots of our chip and of ALE's.
  Tia::Snapshot start_snapshot_;
  std::optional<AleTiaState> start_tia_;
  ptrdiff_t start_pixel_ = 0;
  std::vector<uint8_t> start_screen_, start_previous_screen_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_EMULATOR_H_
