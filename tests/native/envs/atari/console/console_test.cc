// Our processor and television chip against those of ALE: random programs, which use every instruction, and games. All
// of a console's state is compared after every frame, and both screens, whether or not their frames were drawn at once.
#include <unistd.h>

#include <ale/ale_interface.hpp>
#include <ale/common/Log.hpp>
#include <ale/emucore/Console.hxx>
#include <ale/emucore/Event.hxx>
#include <ale/emucore/M6502.hxx>
#include <ale/emucore/OSystem.hxx>
#include <ale/emucore/Serializer.hxx>
#include <ale/emucore/Settings.hxx>
#include <ale/emucore/System.hxx>
#include <ale/emucore/TIA.hxx>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "envs/atari/console/tia.h"
#include "native/check.h"

using namespace neuroevo;
using ale::stella::Event;

namespace {

constexpr int kScreen = 160 * 210;
// If a frame ends within the screen, ALE has colored up to three pixels more than it has drawn. For programs unlike
// games (which access the chip twice within nine pixels), our chip colors other pixels.
constexpr int kAfterTheEnd = 6;
// With sanitizers ALE draws differently than without (for example in Air Raid), so that only our chip is tested there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kAleIsRight = false;
#else
constexpr bool kAleIsRight = true;
#endif

struct Console {
  Console(const std::string& rom, const char* chips) {
    ale::Logger::setMode(ale::Logger::Error);
    os.settings().setString("cpu", chips);
    os.settings().setBool("display_screen", false);
    os.settings().validate();
    os.create();
    CHECK(os.createConsole(rom));
    system().reset();
  }
  ale::stella::System& system() { return os.console().system(); }
  ale::stella::TIA& tia() { return system().tia(); }
  std::string State() {
    ale::stella::Serializer out;
    CHECK(system().saveState("", out));
    return out.get_str();
  }
  void Load(const std::string& state) {
    ale::stella::Deserializer in(state);
    CHECK(system().loadState("", in));
  }

  ale::stella::OSystem os;
  ale::stella::Settings settings{&os};
};

// A cartridge of random bytes. Most programs avoid what stops a processor for good; some prefer the chips' registers.
std::vector<uint8_t> RandomProgram(std::mt19937& random) {
  constexpr int kSizes[] = {2048, 4096, 8192, 16384};
  std::vector<uint8_t> program(kSizes[random() % 4]);
  const int style = random() % 3;
  for (uint8_t& byte : program) {
    const auto stops = [&] { return (byte & 0x1f) == 0x12 || (byte & 0x9f) == 0x02 || (style == 2 && byte == 0); };
    do byte = static_cast<uint8_t>(random());
    while (style > 0 && stops());
    if (style == 2 && random() % 3 == 0)
      byte = static_cast<uint8_t>(random() % 4 ? random() % 0x2d : 0x80 + random() % 128);
  }
  for (size_t end = std::min<size_t>(program.size(), 4096); end <= program.size(); end += 4096) {
    for (size_t vector = end - 4; vector < end; vector += 2) {
      program[vector] = static_cast<uint8_t>(random());
      program[vector + 1] = static_cast<uint8_t>(0xf0 | random() % 16);
    }
  }
  return program;
}

int Different(const uint8_t* a, const uint8_t* b, int count) {
  int different = 0;
  for (int i = 0; i < count; ++i) different += a[i] != b[i];
  return different;
}

void CheckRandomProgram(uint32_t seed, const std::filesystem::path& file) {
  std::mt19937 random(seed);
  const std::vector<uint8_t> program = RandomProgram(random);
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(program.data()), program.size());
  Console ales(file, "low"), ours(file, "neuroevo");
  ours.Load(ales.State());  // the memory of a console is random when it is switched on
  auto& tia = dynamic_cast<Tia&>(ours.tia());
  const auto same = [&](const char* what, bool equal) {
    if (!equal) check::Fail(__FILE__, __LINE__, "program " + std::to_string(seed) + ": another " + what);
  };
  for (int frame = 0; frame < 12; ++frame) {
    tia.set_draws(random() % 2);
    ales.tia().update();
    tia.update();
    same("state", ales.State() == ours.State());
    if (random() % 3 == 0 || frame == 11) {
      tia.FinishScreens();
      same("screen", Different(ales.tia().currentFrameBuffer(), tia.currentFrameBuffer(), kScreen) <= kAfterTheEnd);
      same("last screen",
           Different(ales.tia().previousFrameBuffer(), tia.previousFrameBuffer(), kScreen) <= kAfterTheEnd);
    }
    for (int i = random() % 8; i > 0; --i) {  // from outside: registers of both chips and memory
      const uint16_t addresses[] = {static_cast<uint16_t>(random() % 0x2d),
                                    static_cast<uint16_t>(0x80 + random() % 128),
                                    static_cast<uint16_t>(0x280 + random() % 0x20)};
      const uint16_t address = addresses[random() % 3];
      const uint8_t value = static_cast<uint8_t>(random());
      ales.system().poke(address, value);
      ours.system().poke(address, value);
    }
    const uint16_t address = static_cast<uint16_t>(random() % 0x300);
    same("byte", ales.system().peek(address) == ours.system().peek(address));
    const auto input = static_cast<Event::Type>(random() % 20 + 2);
    const int on = random() % 2;
    ales.os.event()->set(input, on);
    ours.os.event()->set(input, on);
  }
}

std::unique_ptr<ale::ALEInterface> Load(const std::string& rom, const char* chips) {
  ale::Logger::setMode(ale::Logger::Error);
  auto game = std::make_unique<ale::ALEInterface>();
  game->setInt("random_seed", 7);
  game->setFloat("repeat_action_probability", 0);
  game->setString("cpu", chips);
  game->loadROM(rom);
  return game;
}

}  // namespace

TEST(RandomProgramsDoTheSame) {
  if (!kAleIsRight) SKIP("invalid decimal digits make ALE's processor read outside its table");
  const char* count = std::getenv("NEUROEVO_TEST_PROGRAMS");
  const char* first = std::getenv("NEUROEVO_TEST_FIRST_PROGRAM");
  const auto file = std::filesystem::temp_directory_path() / ("neuroevo_console_" + std::to_string(getpid()) + ".bin");
  std::streambuf* errors = std::cerr.rdbuf(nullptr);  // both processors name each instruction that stops them
  try {
    const uint32_t begin = first == nullptr ? 0 : std::strtoul(first, nullptr, 10);
    for (uint32_t i = 0; i < (count == nullptr ? 150 : std::strtoul(count, nullptr, 10)); ++i) {
      CheckRandomProgram(begin + i, file);
    }
  } catch (...) {
    std::cerr.rdbuf(errors);
    std::filesystem::remove(file);
    throw;
  }
  std::cerr.rdbuf(errors);
  std::filesystem::remove(file);
}

TEST(GamesDoTheSame) {
  const char* folder = std::getenv("NEUROEVO_ROMS");
  if (folder == nullptr || *folder == '\0') SKIP("NEUROEVO_ROMS is not set");
  // Cartridges of 2, 4, 8 and 16 kB with and without memory of their own, by several ways to exchange banks; paddles;
  // frames that end within the screen, and that lose their color (PAL).
  for (const char* name : {"breakout", "pong", "tic_tac_toe_3d", "freeway", "frostbite", "elevator_action", "pitfall2",
                           "montezuma_revenge", "robotank", "private_eye", "video_cube", "air_raid", "tetris"}) {
    const std::string rom = std::string(folder) + "/" + name + ".bin";
    const auto ales = Load(rom, "low"), ours = Load(rom, "neuroevo");
    auto& tia = dynamic_cast<Tia&>(ours->theOSystem->console().system().tia());
    const ale::stella::TIA& reference = ales->theOSystem->console().system().tia();
    const ale::ActionVect actions = ales->getLegalActionSet();
    std::mt19937 random(11);
    ale::Action action = ale::PLAYER_A_NOOP;
    for (int frame = 0; frame < 400; ++frame) {
      if (random() % 6 == 0) action = actions[random() % actions.size()];
      tia.set_draws(random() % 3 == 0);
      const double reward = ours->act(action), expected = ales->act(action);
      const bool looks = random() % 4 == 0;
      if (looks) tia.FinishScreens();
      if (kAleIsRight) {
        CHECK_EQ(reward, expected);
        CHECK_EQ(ours->lives(), ales->lives());
        CHECK_EQ(ours->game_over(), ales->game_over());
        CHECK(std::equal(ours->getRAM().array(), ours->getRAM().array() + 128, ales->getRAM().array()));
        if (frame % 100 == 99) CHECK(ours->cloneState(true).serialize() == ales->cloneState(true).serialize());
      }
      if (looks && kAleIsRight) {
        CHECK_EQ(Different(tia.currentFrameBuffer(), reference.currentFrameBuffer(), kScreen), 0);
        CHECK_EQ(Different(tia.previousFrameBuffer(), reference.previousFrameBuffer(), kScreen), 0);
      }
      if (ales->game_over()) {
        ours->reset_game();
        ales->reset_game();
      }
    }
  }
}

TEST(ASnapshotBringsEverythingBack) {
  const char* folder = std::getenv("NEUROEVO_ROMS");
  if (folder == nullptr || *folder == '\0') SKIP("NEUROEVO_ROMS is not set");
  for (const char* name : {"qbert", "tetris", "private_eye"}) {  // the first two are within a frame after loading
    const auto game = Load(std::string(folder) + "/" + name + ".bin", "neuroevo");
    auto& tia = dynamic_cast<Tia&>(game->theOSystem->console().system().tia());
    const ale::ALEState state = game->cloneState(false);
    const Tia::Snapshot snapshot = tia.TakeSnapshot();
    const auto play = [&] {
      std::vector<std::vector<uint8_t>> screens;
      for (int frame = 0; frame < 40; ++frame) {
        tia.set_draws(frame % 3 == 0);
        game->act(frame % 5 == 0 ? ale::PLAYER_A_FIRE : ale::PLAYER_A_NOOP);
        if (frame % 7 == 6) {
          tia.FinishScreens();
          screens.emplace_back(tia.currentFrameBuffer(), tia.currentFrameBuffer() + 160 * 250);
          screens.emplace_back(tia.previousFrameBuffer(), tia.previousFrameBuffer() + 160 * 250);
        }
      }
      return screens;
    };
    const auto first = play();
    game->restoreState(state);
    tia.Restore(snapshot);
    CHECK(play() == first);
  }
}
