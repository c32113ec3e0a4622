// Workload for profiling the emulator: ale_train FRAMES ROM... plays random actions of the minimal set, four frames
// each, in every game with our chips and in a few games also with ALE's chips. It uses no clocks and threads, so that
// the profile is reproducible. See AleProfile.cmake.
#include <ale/ale_interface.hpp>
#include <ale/common/Log.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>

#include "envs/atari/console/tia.h"

namespace {

constexpr int kWithAle = 3;

void Play(const char* rom, const char* chips, int frames, int seed) {
  ale::ALEInterface game;
  game.setInt("random_seed", seed);
  game.setFloat("repeat_action_probability", 0);
  game.setString("cpu", chips);
  game.loadROM(rom);
  ale::stella::TIA& tia = game.theOSystem->console().system().tia();
  auto* ours = dynamic_cast<neuroevo::Tia*>(&tia);
  const ale::ActionVect actions = game.getMinimalActionSet();
  std::mt19937 random(seed);
  for (int frame = 0; frame < frames; frame += 4) {
    const ale::Action action = actions[random() % actions.size()];
    for (int tick = 0; tick < 4; ++tick) {
      if (ours != nullptr) ours->set_draws(tick >= 2);
      game.act(action);
    }
    if (game.game_over()) game.reset_game();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int frames = argc > 2 ? std::atoi(argv[1]) : 0;
  if (frames < 1) {
    std::fprintf(stderr, "usage: ale_train FRAMES ROM...\n");
    return 2;
  }
  ale::Logger::setMode(ale::Logger::Error);
  try {
    for (int i = 2; i < argc; ++i) {
      Play(argv[i], "neuroevo", frames, i);
      if (i < 2 + kWithAle) Play(argv[i], "low", frames, i);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ale_train: %s\n", error.what());
    return 1;
  }
  return 0;
}
