// Games where memory runs out, but for loading them, which is ALE's own: native/envs/family_faults.h.
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
