// The Atari family: games of the Arcade Learning Environment under the protocol of arXiv 1712.06567.
//
// An episode starts from a snapshot taken after loading: in ale-py 0.12.1 reset_game draws from a running generator and
// RAM carries over, so that repeated resets differ. Then 1 to 30 single-frame no-ops, 1 + splitmix64(seed) mod 30 of
// them; then, if action 1 of the minimal set is FIRE, actions 1 and 2 for one step each. Sticky actions are off.
#include <ale/ale_interface.hpp>
#include <ale/emucore/MD5.hxx>
#include <ale/emucore/System.hxx>
#include <ale/emucore/TIA.hxx>
#include <ale/games/Roms.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "envs/atari_screen.h"
#include "envs/env.h"

namespace neuroevo {
namespace {

constexpr int kStack = 4;
constexpr int kFrameSkip = 4;
constexpr int kMaxNoops = 30;
constexpr int64_t kMaxFrames = 400'000;     // an episode's own limit
constexpr size_t kScreenBytes = 160 * 300;  // of each of the TIA's two frame buffers
constexpr int kEmulatorSeed = 0;

// Steele, Lea and Flood 2014; the finaliser of one step from state `seed`.
uint64_t SplitMix64(uint64_t seed) {
  uint64_t z = seed + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// What TIA::save, and so cloneState, leaves out: whether a frame is unfinished and where its next pixel goes (after
// loading, Q*bert and Tetris are in the middle of one), and the masks that place objects on the screen. These members
// are private, but an explicit instantiation may name them.
using ale::stella::TIA;
using TiaState = std::tuple<bool&, bool&, uint8_t*&, const uint8_t*&, const uint8_t*&, const uint8_t*&, const uint8_t*&,
                            const uint8_t*&, const uint32_t*&>;
constexpr int kFramePointer = 2;  // index in TiaState
TiaState UnsavedState(TIA& tia);
template <auto... kMembers>
struct UnsavedMembers {
  friend TiaState UnsavedState(TIA& tia) { return {tia.*kMembers...}; }
};
template struct UnsavedMembers<&TIA::myPartialFrameFlag, &TIA::myFrameGreyed, &TIA::myFramePointer,
                               &TIA::myCurrentBLMask, &TIA::myCurrentM0Mask, &TIA::myCurrentM1Mask,
                               &TIA::myCurrentP0Mask, &TIA::myCurrentP1Mask, &TIA::myCurrentPFMask>;

template <class... T>
std::tuple<T...> CopyOf(const std::tuple<T&...>& references) {
  return references;
}

// ALE ends the process on a file it cannot load, so everything that it would object to is checked first.
void CheckRom(const std::filesystem::path& rom) {
  if (!std::filesystem::is_regular_file(rom)) ThrowNotFound("ROM file '", rom.string(), "' does not exist");
  std::ifstream file(rom, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string md5 = ale::stella::MD5(bytes.data(), static_cast<uint32_t>(bytes.size()));
  // As ALEInterface::isSupportedROM, which leaks the settings. A name alone finds settings too.
  const std::unique_ptr<const ale::RomSettings> settings(ale::buildRomRLWrapper(rom, md5));
  if (!settings || settings->md5() != md5) {
    ThrowInvalid("file '", rom.string(), "' is not the ROM of a single-player game that ALE ", ALE_VERSION,
                 " knows by its MD5 sum");
  }
}

std::unique_ptr<ale::ALEInterface> Load(const std::filesystem::path& rom) {
  static std::once_flag quiet;  // the mode is a plain global, and pools may be made by several threads at once
  std::call_once(quiet, [] { ale::Logger::setMode(ale::Logger::Error); });
  auto ale = std::make_unique<ale::ALEInterface>();
  ale->setInt("random_seed", kEmulatorSeed);
  ale->setFloat("repeat_action_probability", 0.0f);
  ale->loadROM(rom);
  return ale;
}

// What the environments of one pool share.
struct Game {
  explicit Game(const std::filesystem::path& rom_path) : rom(rom_path) {
    CheckRom(rom);
    auto ale = Load(rom);
    actions = ale->getMinimalActionSet();
    if (actions.empty()) ThrowInvalid("ROM '", rom.string(), "' has no actions");
    height = static_cast<int>(ale->getScreen().height());
    if (ale->getScreen().width() != kScreenWidth) ThrowInvalid("screen is ", ale->getScreen().width(), " pixels wide");
    std::array<uint32_t, 256> rgb;
    for (int i = 0; i < 256; ++i) rgb[i] = ale->theOSystem->colourPalette().getRGB(i);
    screen_to_frame = std::make_unique<const ScreenToFrame>(rgb, height);
  }

  std::filesystem::path rom;
  ale::ActionVect actions;
  int height;
  std::unique_ptr<const ScreenToFrame> screen_to_frame;
};

class AtariEnv : public Env {
 public:
  explicit AtariEnv(std::shared_ptr<const Game> game) : game_(std::move(game)), ale_(Load(game_->rom)) {
    start_ = ale_->cloneState(/*include_rng=*/true);
    start_tia_ = CopyOf(UnsavedState(tia()));
    start_pixel_ = std::get<kFramePointer>(start_tia_) - media().currentFrameBuffer();
    start_current_.assign(media().currentFrameBuffer(), media().currentFrameBuffer() + kScreenBytes);
    start_previous_.assign(media().previousFrameBuffer(), media().previousFrameBuffer() + kScreenBytes);
  }

  void Reset(uint64_t seed, int64_t max_frames) override {
    Restore();
    const int noops = 1 + static_cast<int>(SplitMix64(seed) % kMaxNoops);
    for (int i = 0; i < noops; ++i) {  // also where NOOP is not a minimal action, as in Backgammon
      ale_->act(ale::PLAYER_A_NOOP);
      if (ale_->game_over()) Restore();
    }
    if (game_->actions.size() > 2 && game_->actions[1] == ale::PLAYER_A_FIRE) {
      for (int action = 1; action <= 2; ++action) {
        for (int i = 0; i < kFrameSkip && !ale_->game_over(); ++i) ale_->act(game_->actions[action]);
        if (ale_->game_over()) Restore();
      }
    }
    last_frame_ = ale_->getEpisodeFrameNumber() + (max_frames == 0 ? kMaxFrames : std::min(max_frames, kMaxFrames));
    for (auto& frame : stack_) frame.fill(0);
    PushFrame();
  }

  StepResult Step(const void* action) override {
    const ale::Action button = game_->actions[*static_cast<const int32_t*>(action)];
    double reward = 0;
    bool done = false;
    for (int i = 0; i < kFrameSkip && !done; ++i) {
      reward += ale_->act(button);
      done = ale_->game_over() || ale_->getEpisodeFrameNumber() >= last_frame_;
    }
    PushFrame();
    return {reward, done};
  }

  // Interleaves the four frames, oldest first: [84, 84, 4].
  void Observe(void* out) const override {
    static_assert(kStack == 4, "a pixel's stack is written as one word");
    const auto& a = stack_[(newest_ + 1) % kStack];
    const auto& b = stack_[(newest_ + 2) % kStack];
    const auto& c = stack_[(newest_ + 3) % kStack];
    const auto& d = stack_[newest_];
    auto* pixels = static_cast<uint8_t*>(out);
    for (int p = 0; p < kFramePixels; ++p) {  // byte order of a little-endian machine; the compiler vectorises this
      const uint32_t word = a[p] | b[p] << 8 | c[p] << 16 | static_cast<uint32_t>(d[p]) << 24;
      std::memcpy(pixels + p * kStack, &word, sizeof(word));
    }
  }

 private:
  TIA& tia() const { return ale_->theOSystem->console().system().tia(); }
  ale::stella::MediaSource& media() const { return ale_->theOSystem->console().mediaSource(); }

  void Restore() {
    ale_->restoreState(start_);
    UnsavedState(tia()) = start_tia_;
    std::get<kFramePointer>(UnsavedState(tia())) = media().currentFrameBuffer() + start_pixel_;  // the two buffers swap
    // Not part of the state, but visible: a frame shorter than the last one leaves old lines standing.
    std::memcpy(media().currentFrameBuffer(), start_current_.data(), kScreenBytes);
    std::memcpy(media().previousFrameBuffer(), start_previous_.data(), kScreenBytes);
  }

  void PushFrame() {
    newest_ = (newest_ + 1) % kStack;
    game_->screen_to_frame->Convert(media().previousFrameBuffer(), media().currentFrameBuffer(),
                                    stack_[newest_].data());
  }

  std::shared_ptr<const Game> game_;
  std::unique_ptr<ale::ALEInterface> ale_;
  ale::ALEState start_;
  decltype(CopyOf(std::declval<TiaState>())) start_tia_;
  ptrdiff_t start_pixel_ = 0;
  std::vector<uint8_t> start_current_, start_previous_;
  int64_t last_frame_ = 0;  // the episode is over at this frame number
  std::array<std::array<uint8_t, kFramePixels>, kStack> stack_{};
  int newest_ = 0;
};

class AtariFactory : public EnvFactory {
 public:
  explicit AtariFactory(const EnvOptions& given) {
    OptionReader options("atari", given);
    const std::string rom = options.String("rom", "");
    options.Finish();
    if (rom.empty()) ThrowInvalid("atari needs the option rom=FILE");
    game_ = std::make_shared<const Game>(rom);
    spec_.observation_dtype = DType::kUint8;
    spec_.observation_shape = {kFrameSide, kFrameSide, kStack};
    spec_.action_dtype = DType::kInt32;
    spec_.num_actions = static_cast<int64_t>(game_->actions.size());
    spec_.frame_skip = kFrameSkip;
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
