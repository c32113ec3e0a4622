// Robots where memory runs out, but for loading their models, which is MuJoCo's own: native/envs/family_faults.h.
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
