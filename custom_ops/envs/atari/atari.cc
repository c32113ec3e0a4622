// The Atari family: games of the Arcade Learning Environment, under the protocol of arXiv 1712.06567 ("uber") or under
// that of gymnasium.wrappers.AtariPreprocessing with FrameStackObservation ("gymnasium").
//
// An episode starts from the emulator's start state, see emulator.h. All randomness is derived from the SplitMix64
// sequence of the seed: the first number n gives 1 + n mod noop_max single-frame no-ops; the second, mod 2^31, seeds
// ALE's generator of sticky actions. Then, only under "uber": if action 1 of the minimal set is FIRE, actions 1 and 2
// for one step each.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "envs/atari/emulator.h"
#include "envs/atari/options.h"
#include "envs/atari/screen.h"
#include "envs/atari/view.h"
#include "envs/env.h"
#include "envs/episode_info.h"

namespace neuroevo {
namespace {

// Default time limits. Gymnasium's limit applies to ALE's episode frames, which include the no-ops.
constexpr int64_t kUberFrames = 400'000, kGymnasiumFrames = 108'000;

// Steele, Lea and Flood 2014; the finalizer of one step from state `seed`. The sequence adds kGolden each time.
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
uint64_t SplitMix64(uint64_t seed) {
  uint64_t z = seed + kGolden;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Return Gymnasium's name of an action: UPFIRE for the emulator's PLAYER_A_UPFIRE.
std::string NameOf(ale::Action action) {
  const std::string name = ale::action_to_string(action), player = "PLAYER_A_";
  return name.compare(0, player.size(), player) == 0 ? name.substr(player.size()) : name;
}

// Settings and tables shared by the environments of one pool.
struct Game {
  explicit Game(const EnvOptions& given) : options(ReadAtariOptions(given)) {
    const AtariEmulator emulator(options);
    minimal_actions = emulator.ale().getMinimalActionSet();
    actions = options.full_action_space ? emulator.ale().getLegalActionSet() : minimal_actions;
    if (options.behavior.empty()) {
      for (int64_t byte = 0; byte < AtariEmulator::kRamBytes; ++byte) options.behavior.push_back(byte);
    }
    if (actions.empty()) ThrowInvalid("ROM '", options.rom, "' has no actions");
    height = emulator.height();
    palette = emulator.Palette();
    make_view = MakeAtariViewFactory(options, emulator);
  }

  bool uber() const { return options.protocol == AtariProtocol::kUber; }
  bool fires_at_reset() const {
    return uber() && minimal_actions.size() > 2 && minimal_actions[1] == ale::PLAYER_A_FIRE;
  }

  AtariOptions options;
  ale::ActionVect minimal_actions, actions;
  int height;
  std::array<uint32_t, 256> palette;
  AtariViewFactory make_view;
};

class AtariEnv : public Env, public EpisodeInfo {
 public:
  explicit AtariEnv(std::shared_ptr<const Game> game)
      : game_(std::move(game)), emulator_(game_->options), view_(game_->make_view()) {}

  void Reset(uint64_t seed, int64_t max_frames) override {
    const auto restart = [this, sticky = static_cast<uint32_t>(SplitMix64(seed + kGolden) & 0x7fffffff)] {
      emulator_.Restart(sticky);
    };
    restart();
    const int noop_max = game_->options.noop_max;
    const int noops = noop_max == 0 ? 0 : 1 + static_cast<int>(SplitMix64(seed) % noop_max);
    for (int i = 0; i < noops; ++i) {  // even if NOOP is not in the minimal action set, as in Backgammon
      emulator_.Act(ale::PLAYER_A_NOOP, /*draws=*/false);
      if (ale().game_over()) restart();
    }
    if (game_->fires_at_reset()) {
      for (int action = 1; action <= 2; ++action) {
        for (int i = 0; i < game_->options.frame_skip && !ale().game_over(); ++i) {
          emulator_.Act(game_->minimal_actions[action], /*draws=*/false);
        }
        if (ale().game_over()) restart();
      }
    }
    lives_ = ale().lives();
    last_frame_ = LastFrame(max_frames);
    end_ = {};
    view_->AfterReset(emulator_);
    PushFrame();
    for (int age = 1; age < stack(); ++age) {  // padding before the first frame: zeros, or that frame
      uint8_t* older = Frame(age);
      if (game_->uber()) {
        std::fill_n(older, frame_bytes_, 0);
      } else {
        std::copy_n(Frame(0), frame_bytes_, older);
      }
    }
  }

  StepResult Step(const void* action) override {
    const ale::Action button = game_->actions[*static_cast<const int32_t*>(action)];
    double reward = 0;
    bool done = false;
    for (int i = 0; i < game_->options.frame_skip && !done; ++i) {
      reward += emulator_.Act(button, /*draws=*/i + 2 >= game_->options.frame_skip);  // views read the last two frames
      end_ = {ale().game_over() || LifeIsLost(), ale().getEpisodeFrameNumber() >= last_frame_};
      done = end_.terminated || end_.truncated;
      if (!done) view_->AfterFrame(emulator_, i);
    }
    PushFrame();
    return {reward, done};
  }

  // The frames, oldest first: [side, side, stack * planes] or, channels first, [stack * planes, side, side].
  void Observe(void* out) const override {
    auto* pixels = static_cast<uint8_t*>(out);
    if (game_->options.channels_first) {
      for (int k = 0; k < stack(); ++k) std::copy_n(Frame(k + 1), frame_bytes_, pixels + k * frame_bytes_);
    } else if (stack() == 4 && game_->options.grayscale) {
      Interleave(Frame(1), Frame(2), Frame(3), Frame(0), pixels);
    } else {
      const int planes = game_->options.planes(), channels = stack() * planes, count = frame_bytes_ / planes;
      for (int channel = 0; channel < channels; ++channel) {
        const uint8_t* from = Frame(channel / planes + 1) + channel % planes * count;
        for (int p = 0; p < count; ++p) pixels[p * channels + channel] = from[p];
      }
    }
  }

  std::optional<StateKey> Key() const override {
    Hash128 hash;
    if (!emulator_.AddState(&hash)) return std::nullopt;
    hash.Add(lives_);
    for (int age = 0; age < stack(); ++age) hash.Add(Frame(age), frame_bytes_);
    return StateKey{hash.value(), last_frame_ - ale().getEpisodeFrameNumber()};
  }

  End HowItEnded() const override { return end_; }

  std::vector<std::string> InfoNames() const override { return {"lives", "episode_frame_number"}; }
  void Infos(int64_t* out) const override {
    out[0] = ale().lives();
    out[1] = ale().getEpisodeFrameNumber();  // since the emulator's start, no-ops included
  }

  void Behavior(void* out) const override {
    uint8_t ram[AtariEmulator::kRamBytes];
    emulator_.ReadRam(ram);
    auto* bytes = static_cast<uint8_t*>(out);
    for (const int64_t byte : game_->options.behavior) *bytes++ = ram[byte];
  }

  void Render(uint8_t* rgb) const override {
    const uint8_t* screen = emulator_.screen();
    for (int p = 0; p < game_->height * kScreenWidth; ++p) {
      const uint32_t color = game_->palette[screen[p]];
      for (int shift : {16, 8, 0}) *rgb++ = static_cast<uint8_t>(color >> shift);
    }
  }

 private:
  ale::ALEInterface& ale() const { return emulator_.ale(); }

  // Return the episode frame number at which the episode is truncated.
  int64_t LastFrame(int64_t max_frames) const {
    const int64_t now = ale().getEpisodeFrameNumber();
    const int64_t own = game_->uber() ? kUberFrames : kGymnasiumFrames - now;
    return now + (max_frames == 0 ? own : std::min(max_frames, own));
  }

  bool LifeIsLost() {
    if (!game_->options.terminal_on_life_loss) return false;
    const int lives = ale().lives();
    return lives < std::exchange(lives_, lives);
  }

  int stack() const { return game_->options.stack; }

  // Return the newest frame for 0 (and for the stack's size), the oldest for 1, the next oldest for 2, ...
  uint8_t* Frame(int age) { return frames_.data() + (newest_ + age) % stack() * frame_bytes_; }
  const uint8_t* Frame(int age) const { return frames_.data() + (newest_ + age) % stack() * frame_bytes_; }

  // Interleave four frames to four bytes per pixel, sixteen pixels per iteration.
  void Interleave(const uint8_t* a, const uint8_t* b, const uint8_t* c, const uint8_t* d, uint8_t* pixels) const {
    int p = 0;
#ifdef __SSE2__
    const auto load = [](const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
    for (; p + 16 <= frame_bytes_; p += 16) {
      const __m128i in_a = load(a + p), in_b = load(b + p), in_c = load(c + p), in_d = load(d + p);
      const __m128i ab[2] = {_mm_unpacklo_epi8(in_a, in_b), _mm_unpackhi_epi8(in_a, in_b)};
      const __m128i cd[2] = {_mm_unpacklo_epi8(in_c, in_d), _mm_unpackhi_epi8(in_c, in_d)};
      auto* to = reinterpret_cast<__m128i*>(pixels + p * 4);
      for (int half = 0; half < 2; ++half) {
        _mm_storeu_si128(to++, _mm_unpacklo_epi16(ab[half], cd[half]));
        _mm_storeu_si128(to++, _mm_unpackhi_epi16(ab[half], cd[half]));
      }
    }
#endif
    for (; p < frame_bytes_; ++p) {
      const uint8_t stack[4] = {a[p], b[p], c[p], d[p]};
      std::memcpy(pixels + p * 4, stack, sizeof(stack));
    }
  }

  void PushFrame() {
    newest_ = (newest_ + 1) % stack();
    view_->Write(emulator_, Frame(0));
  }

  std::shared_ptr<const Game> game_;
  AtariEmulator emulator_;
  std::unique_ptr<AtariView> view_;
  int lives_ = 0;
  int64_t last_frame_ = 0;
  End end_;
  const int frame_bytes_ = game_->options.planes() * game_->options.screen_size * game_->options.screen_size;
  std::vector<uint8_t> frames_ = std::vector<uint8_t>(static_cast<size_t>(frame_bytes_) * game_->options.stack);
  int newest_ = 0;
};

class AtariFactory : public EnvFactory {
 public:
  explicit AtariFactory(const EnvOptions& options) : game_(std::make_shared<const Game>(options)) {
    spec_.observation_dtype = DType::kUint8;
    const AtariOptions& options_read = game_->options;
    const int side = options_read.screen_size, channels = options_read.stack * options_read.planes();
    spec_.observation_shape = {side, side, channels};
    if (options_read.channels_first) spec_.observation_shape = {channels, side, side};
    spec_.action_dtype = DType::kInt32;
    spec_.num_actions = static_cast<int64_t>(game_->actions.size());
    for (ale::Action action : game_->actions) {
      if (!spec_.action_names.empty()) spec_.action_names += '\n';
      spec_.action_names += NameOf(action);
    }
    spec_.frame_skip = game_->options.frame_skip;
    spec_.behavior_dtype = DType::kUint8;
    spec_.behavior_shape = {static_cast<int64_t>(game_->options.behavior.size())};
    spec_.render_shape = {game_->height, kScreenWidth, 3};
    // With sticky actions, the rest of an episode depends on the seed, too.
    spec_.keyed = options_read.repeat_action_probability == 0 && options_read.chips == AtariChips::kOurs;
    spec_.memory = 370'000 + spec_.observation_bytes();
  }

  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<AtariEnv>(game_); }

 private:
  EnvSpec spec_;
  std::shared_ptr<const Game> game_;
};

const bool registered =
    RegisterEnvFamily("atari", [](const EnvOptions& options) { return std::make_unique<AtariFactory>(options); });

}  // namespace
}  // namespace neuroevo
