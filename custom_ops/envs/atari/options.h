// Options of the Atari family. neuroevo/envs/atari.py documents them and validates them too.
#ifndef NEUROEVO_ENVS_ATARI_OPTIONS_H_
#define NEUROEVO_ENVS_ATARI_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "envs/env.h"

namespace neuroevo {

enum class AtariProtocol { kUber, kGymnasium };
// Implementation of processor and television chip: ours (console/) or ALE's. Games behave identically.
enum class AtariChips { kOurs, kAle };

struct AtariOptions {
  std::string rom;
  AtariProtocol protocol = AtariProtocol::kUber;
  double repeat_action_probability = 0;
  bool full_action_space = false;
  std::optional<int> mode, difficulty;  // unset: the game's default
  int frame_skip = 4;
  int noop_max = 30;
  bool terminal_on_life_loss = false;
  // Observation settings, only for Gymnasium's protocol: number of frames, their side in pixels, grayscale or color.
  int stack = 4, screen_size = 84;
  bool grayscale = true;
  AtariChips chips = AtariChips::kOurs;
  std::vector<int64_t> behavior;  // indices of the RAM bytes that form the behavior; empty: all
  bool channels_first = false;    // [stack * planes, side, side], not [side, side, stack * planes]

  int planes() const { return grayscale ? 1 : 3; }
};

// Parse the options. Throws for unknown options and invalid values; the emulator validates the ROM, mode and
// difficulty.
AtariOptions ReadAtariOptions(const EnvOptions& given);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_OPTIONS_H_
