// MuJoCo robots with failing allocations, except while MuJoCo loads their models: native/envs/family_faults.h.
#include <string>

#include "native/envs/family_faults.h"
#include "native/envs/mujoco/robots.h"

using namespace neuroevo;

TEST(Robots) {
  for (const char* robot : {"InvertedPendulum", "Ant"}) {
    for (const auto& [task, file] : kRobots) {
      if (task != robot) continue;
      const std::string name = "task=" + task, model = "model=" + ModelFile(file);
      allocations::FailEach([&name, &model] { return PlayFamily("mujoco", {name, model}, false); });
    }
  }
}
