#include "envs/atari/emulator.h"

#include <ale/emucore/MD5.hxx>
#include <ale/games/Roms.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>

#include "core/error.h"
#include "envs/atari/screen.h"

namespace neuroevo {
namespace {

using ale::StellaEnvironment;
using ale::stella::TIA;

constexpr size_t kScreenBytes = 160 * 300;  // of each of the TIA's two frame buffers
constexpr int kRamAddress = 0x80;
constexpr int kEmulatorSeed = 0;  // used while loading, when only Adventure draws a number, to choose a mode

// Private members of the emulator that its snapshots omit. An explicit instantiation may name private members.
using TiaMembers = std::tuple<bool&, bool&, uint8_t*&, const uint8_t*&, const uint8_t*&, const uint8_t*&,
                              const uint8_t*&, const uint8_t*&, const uint32_t*&>;
constexpr int kFramePointer = 2;  // index in TiaMembers
TiaMembers Unsaved(TIA& tia);
template <auto... kMembers>
struct UnsavedOfTia {
  friend TiaMembers Unsaved(TIA& tia) { return {tia.*kMembers...}; }
};
template struct UnsavedOfTia<&TIA::myPartialFrameFlag, &TIA::myFrameGreyed, &TIA::myFramePointer, &TIA::myCurrentBLMask,
                             &TIA::myCurrentM0Mask, &TIA::myCurrentM1Mask, &TIA::myCurrentP0Mask, &TIA::myCurrentP1Mask,
                             &TIA::myCurrentPFMask>;

// The previous action, which sticky actions repeat.
using LastAction = std::tuple<ale::Action&, float&, ale::Action&, float&>;
LastAction Unsaved(StellaEnvironment& environment);
template <auto... kMembers>
struct UnsavedOfEnvironment {
  friend LastAction Unsaved(StellaEnvironment& environment) { return {environment.*kMembers...}; }
};
template struct UnsavedOfEnvironment<&StellaEnvironment::m_player_a_action, &StellaEnvironment::m_paddle_a_strength,
                                     &StellaEnvironment::m_player_b_action, &StellaEnvironment::m_paddle_b_strength>;

// The game's rules and score, owned by ALEInterface.
ale::RomSettings*& SettingsOf(StellaEnvironment& environment);
template <auto kMember>
struct SettingsOfEnvironment {
  friend ale::RomSettings*& SettingsOf(StellaEnvironment& environment) { return environment.*kMember; }
};
template struct SettingsOfEnvironment<&StellaEnvironment::m_settings>;

// Private state of ALEInterface::act.
using ActionState = std::tuple<ale::ALEState&, ale::Action&, const bool&>;
ActionState StateOf(StellaEnvironment& environment);
template <auto... kMembers>
struct StateOfEnvironment {
  friend ActionState StateOf(StellaEnvironment& environment) { return {environment.*kMembers...}; }
};
template struct StateOfEnvironment<&StellaEnvironment::m_state, &StellaEnvironment::m_player_a_action,
                                   &StellaEnvironment::m_use_paddles>;

// Check everything that ALE rejects, since ALE ends the process for a file that it cannot load.
void CheckRom(const std::filesystem::path& rom) {
  if (!std::filesystem::is_regular_file(rom)) ThrowNotFound("ROM file '", rom.string(), "' does not exist");
  std::ifstream file(rom, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string md5 = ale::stella::MD5(bytes.data(), static_cast<uint32_t>(bytes.size()));
  // Like ALEInterface::isSupportedROM, which leaks the settings. A matching file name alone also finds settings.
  const std::unique_ptr<const ale::RomSettings> settings(ale::buildRomRLWrapper(rom, md5));
  if (!settings || settings->md5() != md5) {
    ThrowInvalid("file '", rom.string(), "' is not the ROM of a single-player game that ALE ", ALE_VERSION,
                 " recognizes by its MD5 sum");
  }
}

void CheckAvailable(const char* what, int value, const std::vector<unsigned>& available, const std::string& game) {
  if (std::find(available.begin(), available.end(), static_cast<unsigned>(value)) != available.end()) return;
  std::string listed;
  for (unsigned each : available) listed += (listed.empty() ? "" : ", ") + std::to_string(each);
  ThrowInvalid("atari option ", what, " is ", value, ", which ", game, " does not support; expected one of: ", listed);
}

std::unique_ptr<ale::ALEInterface> Load(const AtariOptions& options) {
  CheckRom(options.rom);
  static std::once_flag quiet;  // the logger's mode is an unguarded global, and threads may create pools concurrently
  std::call_once(quiet, [] { ale::Logger::setMode(ale::Logger::Error); });
  auto ale = std::make_unique<ale::ALEInterface>();
  ale->setInt("random_seed", kEmulatorSeed);
  ale->setFloat("repeat_action_probability", static_cast<float>(options.repeat_action_probability));
  if (options.chips == AtariChips::kOurs) ale->setString("cpu", "neuroevo");
  ale->loadROM(options.rom);
  // The loaded game's default mode and difficulty are not set again, so that naming them has no effect. Other values
  // need a reset.
  const std::string game = ale->romSettings->rom();
  bool reset = false;
  if (options.mode) {
    CheckAvailable("mode", *options.mode, ale->getAvailableModes(), game);
    if (ale->getMode() != static_cast<ale::game_mode_t>(*options.mode)) {
      ale->setMode(*options.mode);
      reset = true;
    }
  }
  if (options.difficulty) {
    CheckAvailable("difficulty", *options.difficulty, ale->getAvailableDifficulties(), game);
    if (ale->getDifficulty() != static_cast<ale::difficulty_t>(*options.difficulty)) {
      ale->setDifficulty(*options.difficulty);
      reset = true;
    }
  }
  if (reset) ale->reset_game();
  if (ale->getScreen().width() != kScreenWidth) ThrowInvalid("screen is ", ale->getScreen().width(), " pixels wide");
  return ale;
}

}  // namespace

AtariEmulator::AtariEmulator(const AtariOptions& options)
    : ale_(Load(options)),
      repeat_action_probability_(ale_->getFloat("repeat_action_probability")),  // ALE keeps six digits
      start_(ale_->cloneState(/*include_rng=*/false)),
      start_settings_(ale_->romSettings->clone()) {
  if (options.chips == AtariChips::kOurs) {
    tia_ = static_cast<Tia*>(&tia());
    start_snapshot_ = tia_->TakeSnapshot();
    return;
  }
  start_tia_ = Unsaved(tia());
  start_pixel_ = std::get<kFramePointer>(*start_tia_) - media().currentFrameBuffer();
  start_screen_.assign(media().currentFrameBuffer(), media().currentFrameBuffer() + kScreenBytes);
  start_previous_screen_.assign(media().previousFrameBuffer(), media().previousFrameBuffer() + kScreenBytes);
}

std::array<uint32_t, 256> AtariEmulator::Palette() const {
  std::array<uint32_t, 256> rgb;
  for (int i = 0; i < 256; ++i) rgb[i] = ale_->theOSystem->colourPalette().getRGB(i);
  return rgb;
}

void AtariEmulator::Restart(uint32_t random_seed) {
  ale_->restoreState(start_);
  ale_->romSettings.reset(start_settings_->clone());
  SettingsOf(*ale_->environment) = ale_->romSettings.get();
  if (tia_ != nullptr) {
    tia_->Restore(start_snapshot_);
  } else {
    Unsaved(tia()) = *start_tia_;
    std::get<kFramePointer>(Unsaved(tia())) = media().currentFrameBuffer() + start_pixel_;  // the two buffers swap
    // Not part of the saved state, but visible: a frame shorter than the last one leaves old lines in the buffer.
    std::memcpy(media().currentFrameBuffer(), start_screen_.data(), kScreenBytes);
    std::memcpy(media().previousFrameBuffer(), start_previous_screen_.data(), kScreenBytes);
  }
  Unsaved(*ale_->environment) = std::make_tuple(ale::PLAYER_A_NOOP, 1.0f, ale::PLAYER_B_NOOP, 1.0f);
  ale_->environment->getEnvironmentRNG().seed(random_seed);
}

double AtariEmulator::Act(ale::Action action, bool draws) {
  ale::RomSettings& game = *ale_->romSettings;
  if (game.isTerminal()) return 0;
  StellaEnvironment& environment = *ale_->environment;
  const auto [state, last_action, paddles] = StateOf(environment);
  ale::stella::Random& random = environment.getEnvironmentRNG();
  if (random.nextDouble() >= repeat_action_probability_) last_action = action;
  random.nextDouble();  // ALE's draw for the second player, whose action is always NOOP
  ale::stella::Event* event = ale_->theOSystem->event();
  if (paddles) {
    state.applyActionPaddles(event, last_action, 1.0f, ale::PLAYER_B_NOOP, 0.0f);
  } else {
    state.applyActionJoysticks(event, last_action, ale::PLAYER_B_NOOP);
  }
  if (tia_ != nullptr) tia_->set_draws(draws);
  tia().update();
  game.step(ale_->theOSystem->console().system());
  state.incrementFrame();
  return game.getReward();
}

bool AtariEmulator::AddState(Hash128* hash) const {
  const std::string game = ale_->romSettings->rom();
  if (game == "chopper_command" || game == "miniature_golf") return false;
  const std::string saved = ale_->cloneState(/*include_rng=*/false).serialize();
  hash->Add(saved.data(), saved.size());
  return tia_->AddUnsaved(hash);
}

void AtariEmulator::ReadRam(uint8_t* out) const {
  ale::stella::System& system = ale_->theOSystem->console().system();
  for (int i = 0; i < kRamBytes; ++i) out[i] = system.peek(static_cast<uint16_t>(kRamAddress + i));
}

}  // namespace neuroevo
