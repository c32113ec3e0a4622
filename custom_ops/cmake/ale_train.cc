// What the emulator is profiled on: ale_train FRAMES ROM... plays random actions of the minimal set, four frames each,
// in every game. Without clocks and threads, so that the profile is the same every time. See AleProfile.cmake.
#include <ale/ale_interface.hpp>
#include <ale/common/Log.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>

int main(int argc, char** argv) {
  const int frames = argc > 2 ? std::atoi(argv[1]) : 0;
  if (frames < 1) {
    std::fprintf(stderr, "usage: ale_train FRAMES ROM...\n");
    return 2;
  }
  ale::Logger::setMode(ale::Logger::Error);
  try {
    for (int i = 2; i < argc; ++i) {
      ale::ALEInterface game;
      game.setInt("random_seed", i);
      game.setFloat("repeat_action_probability", 0);
      game.loadROM(argv[i]);
      const ale::ActionVect actions = game.getMinimalActionSet();
      std::mt19937 random(i);
      for (int frame = 0; frame < frames; frame += 4) {
        const ale::Action action = actions[random() % actions.size()];
        for (int tick = 0; tick < 4; ++tick) game.act(action);
        if (game.game_over()) game.reset_game();
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ale_train: %s\n", error.what());
    return 1;
  }
  return 0;
}
