// Mazes for tests: a pool of them, and maps. Needs the folder of the package's maps in NEUROEVO_MAZES.
#ifndef NEUROEVO_TESTS_NATIVE_ENVS_HARD_MAZE_MAZES_H_
#define NEUROEVO_TESTS_NATIVE_ENVS_HARD_MAZE_MAZES_H_

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "envs/env_pool.h"
#include "envs/hard_maze/robot.h"
#include "native/check.h"

namespace neuroevo {

inline std::string MapFile(const std::string& name) {
  const char* folder = std::getenv("NEUROEVO_MAZES");
  if (folder == nullptr || *folder == '\0') SKIP("NEUROEVO_MAZES is not set");
  return std::string(folder) + "/" + name + ".txt";
}

// Map file for a test, removed at the end.
class TemporaryMap {
 public:
  explicit TemporaryMap(const std::string& text) {
    const int descriptor = mkstemp(name_.data());
    CHECK(descriptor >= 0);
    close(descriptor);
    std::ofstream(name_) << text;
  }
  ~TemporaryMap() { unlink(name_.c_str()); }
  const std::string& name() const { return name_; }

 private:
  std::string name_ = "/tmp/neuroevo_maze_XXXXXX";
};

// Pool of mazes with shorthand calls.
class Mazes {
 public:
  explicit Mazes(EnvOptions options, int64_t slots = 1, int threads = 1)
      : pool("hard_maze", options, slots, std::make_shared<ThreadPool>(threads)), all(slots) {
    std::iota(all.begin(), all.end(), 0);
  }

  void Reset(int64_t max_frames = 0) {
    pool.Reset(all, std::vector<uint64_t>(all.size(), 1), std::vector<int64_t>(all.size(), max_frames));
  }

  StepResult Step(float turn, float speed) {
    const float action[] = {turn, speed};
    StepResult result{};
    pool.Step({0}, action, &result.reward, &result.done);
    return result;
  }

  std::array<double, 5> State() {
    std::array<double, 5> state;
    pool.State({0}, state.data());
    return state;
  }

  std::vector<float> Sensors() {
    std::vector<float> sensors(kSensors);
    pool.Observe({0}, sensors.data());
    return sensors;
  }

  std::vector<uint8_t> Image() {
    std::vector<uint8_t> image(pool.spec().observation_bytes());
    pool.Observe({0}, image.data());
    return image;
  }

  EnvPool pool;
  std::vector<int64_t> all;
};

}  // namespace neuroevo

#endif  // NEUROEVO_TESTS_NATIVE_ENVS_HARD_MAZE_MAZES_H_
