#include "envs/atari/options.h"

#include <limits>

#include "core/error.h"

namespace neuroevo {
namespace {

constexpr int kMaxFrameSkip = 1000;
constexpr int kMaxNoops = 1000;
constexpr int kMaxStack = 16;
constexpr int kRamBytes = 128;
// Below this range OpenCV averages whole pixels by another rule, and above the width of a screen it interpolates.
constexpr int kMinScreen = 32, kMaxScreen = 160;

std::optional<int> OptionalInt(OptionReader* options, const std::string& key) {
  const auto value = options->OptionalInt(key, 0, std::numeric_limits<int>::max());
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

}  // namespace

AtariOptions ReadAtariOptions(const EnvOptions& given) {
  OptionReader options("atari", given);
  AtariOptions read;
  read.rom = options.String("rom", "");
  if (options.OneOf("protocol", {"uber", "gymnasium"}) == "gymnasium") read.protocol = AtariProtocol::kGymnasium;
  read.repeat_action_probability = options.Double("repeat_action_probability", 0, 0, 1);
  read.full_action_space = options.Bool("full_action_space", false);
  read.mode = OptionalInt(&options, "mode");
  read.difficulty = OptionalInt(&options, "difficulty");
  read.frame_skip = static_cast<int>(options.Int("frame_skip", read.frame_skip, 1, kMaxFrameSkip));
  read.noop_max = static_cast<int>(options.Int("noop_max", read.noop_max, 0, kMaxNoops));
  read.terminal_on_life_loss = options.Bool("terminal_on_life_loss", false);
  read.stack = static_cast<int>(options.Int("stack", read.stack, 1, kMaxStack));
  read.screen_size = static_cast<int>(options.Int("screen_size", read.screen_size, kMinScreen, kMaxScreen));
  read.grayscale = options.Bool("grayscale", true);
  read.channels_first = options.Bool("channels_first", false);
  read.behavior = options.Ints("behavior", 0, kRamBytes - 1);
  if (options.OneOf("emulator", {"neuroevo", "ale"}) == "ale") read.chips = AtariChips::kAle;
  options.Finish();
  if (read.protocol == AtariProtocol::kUber && (read.stack != 4 || read.screen_size != 84 || !read.grayscale)) {
    ThrowInvalid("the protocol uber shows 4 gray frames of 84x84, expected protocol=gymnasium with stack=", read.stack,
                 ", screen_size=", read.screen_size, ", grayscale=", read.grayscale ? "true" : "false");
  }
  if (read.rom.empty()) ThrowInvalid("atari needs the option rom=FILE");
  return read;
}

}  // namespace neuroevo
