// The options of the Atari family. neuroevo/envs/atari.py describes them to users and checks them too.
#ifndef NEUROEVO_ENVS_ATARI_OPTIONS_H_
#define NEUROEVO_ENVS_ATARI_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "envs/env.h"

namespace neuroevo {

enum class AtariProtocol { kUber, kGymnasium };
// Whose processor and television chip: ours (console/) or those of ALE. What a game does is the same.
enum class AtariChips { kOurs, kAle };

struct AtariOptions {
  std::string rom;
  AtariProtocol protocol = AtariProtocol::kUber;
  double repeat_action_probability = 0;
  bool full_action_space = false;
  std::optional<int> mode, difficulty;  // none: the game's default
  int frame_skip = 4;
  int noop_max = 30;
  bool terminal_on_life_loss = false;
  // What is shown, of Gymnasium's protocol alone: frames, their side in pixels, and whether they are gray.
  int stack = 4, screen_size = 84;
  bool grayscale = true;
  AtariChips chips = AtariChips::kOurs;
  std::vector<int64_t> behavior;  // numbers of the bytes of RAM that are the behavior; none: all
  bool channels_first = false;    // [stack * planes, side, side], not [side, side, stack * planes]

  int planes() const { return grayscale ? 1 : 3; }
};

// Throws for an unknown option and a bad value; whether the ROM is one, and has the mode, is left to the emulator.
AtariOptions ReadAtariOptions(const EnvOptions& given);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_OPTIONS_H_
