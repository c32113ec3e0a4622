// Atari games with failing allocations, except while ALE loads them: native/envs/family_faults.h.
#include <string>

#include "native/envs/atari/games.h"
#include "native/envs/family_faults.h"

using namespace neuroevo;

TEST(Games) {
  const std::string rom = "rom=" + Rom("pong");
  for (const char* emulator : {"emulator=neuroevo", "emulator=ale"}) {
    allocations::FailEach([&] { return PlayFamily("atari", {rom, emulator}, false); });
  }
}
