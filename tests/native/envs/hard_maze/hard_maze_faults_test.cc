// Mazes with failing allocations: native/envs/family_faults.h.
#include <string>

#include "native/envs/family_faults.h"
#include "native/envs/hard_maze/mazes.h"

using namespace neuroevo;

TEST(Sensors) {
  const std::string map = "map=" + MapFile("medium");
  allocations::FailEach([&] { return PlayFamily("hard_maze", {map}, true); });
}

TEST(Images) {
  const std::string map = "map=" + MapFile("hard");
  allocations::FailEach([&] { return PlayFamily("hard_maze", {map, "observation=image"}, true); });
}
