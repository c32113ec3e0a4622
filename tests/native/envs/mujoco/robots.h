// MuJoCo robots for tests: a pool of one task. Needs the folder of Gymnasium's models in NEUROEVO_MUJOCO_ASSETS.
#ifndef NEUROEVO_TESTS_NATIVE_ENVS_MUJOCO_ROBOTS_H_
#define NEUROEVO_TESTS_NATIVE_ENVS_MUJOCO_ROBOTS_H_

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "envs/env_pool.h"
#include "envs/mujoco/task.h"
#include "native/check.h"

namespace neuroevo {

inline std::string ModelFile(const std::string& file) {
  const char* folder = std::getenv("NEUROEVO_MUJOCO_ASSETS");
  if (folder == nullptr || *folder == '\0') SKIP("NEUROEVO_MUJOCO_ASSETS is not set");
  return std::string(folder) + "/" + file;
}

// Every task and its model.
inline const std::vector<std::pair<std::string, std::string>> kRobots = {
    {"Ant", "ant.xml"},
    {"HalfCheetah", "half_cheetah.xml"},
    {"Hopper", "hopper.xml"},
    {"Humanoid", "humanoid.xml"},
    {"HumanoidStandup", "humanoidstandup.xml"},
    {"InvertedDoublePendulum", "inverted_double_pendulum.xml"},
    {"InvertedPendulum", "inverted_pendulum.xml"},
    {"Pusher", "pusher_v5.xml"},
    {"Reacher", "reacher.xml"},
    {"Swimmer", "swimmer.xml"},
    {"Walker2d", "walker2d_v5.xml"},
};

inline EnvOptions RobotOptions(const std::string& task, const std::string& file, EnvOptions options = {}) {
  options["task"] = task;
  options["model"] = ModelFile(file);
  return options;
}

// Model file with a replaced text, in the temporary folder, removed at the end.
struct EditedModel {
  std::string path;
  EditedModel(const std::string& file, const std::string& what, const std::string& by)
      : path(std::filesystem::temp_directory_path() / ("neuroevo_mujoco_test_" + std::to_string(getpid()) + ".xml")) {
    std::ifstream in(ModelFile(file));
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    CHECK(text.find(what) != std::string::npos);
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
      text.replace(at, what.size(), by);
    }
    std::ofstream(path) << text;
  }
  ~EditedModel() { std::filesystem::remove(path); }
};

// Observations and rewards of a player; the numbers of all steps, concatenated.
struct RobotEpisode {
  std::vector<double> observations, rewards, state, behavior;  // the last two: at the end
  bool done = false;
  bool operator==(const RobotEpisode& other) const {
    return observations == other.observations && rewards == other.rewards && state == other.state &&
           behavior == other.behavior && done == other.done;
  }
};

struct Robots {
  EnvPool pool;

  Robots(const std::string& task, const std::string& file, int64_t slots, int threads, EnvOptions options = {})
      : pool("mujoco", RobotOptions(task, file, std::move(options)), slots, std::make_shared<ThreadPool>(threads)) {}

  std::vector<double> Observe(const std::vector<int64_t>& slots) {
    std::vector<double> out(slots.size() * pool.spec().observation_shape[0]);
    pool.Observe(slots, out.data());
    return out;
  }

  // Plays up to `steps` random actions in each slot, the slots together. Actions follow from the slot's seed.
  std::vector<RobotEpisode> Play(const std::vector<int64_t>& slots, const std::vector<uint64_t>& seeds, int steps,
                                 int64_t max_frames = 0) {
    const EnvSpec& spec = pool.spec();
    const int64_t size = spec.observation_shape[0], count = spec.num_actions;
    pool.Reset(slots, seeds, std::vector<int64_t>(slots.size(), max_frames));
    std::vector<RobotEpisode> episodes(slots.size());
    std::vector<std::mt19937> random;
    for (uint64_t seed : seeds) random.emplace_back(static_cast<uint32_t>(seed));
    std::vector<size_t> live(slots.size());
    for (size_t k = 0; k < live.size(); ++k) live[k] = k;
    for (int step = 0; step < steps && !live.empty(); ++step) {
      std::vector<int64_t> live_slots;
      std::vector<float> actions;
      for (size_t k : live) {
        live_slots.push_back(slots[k]);
        for (int64_t a = 0; a < count; ++a) {
          const float unit = static_cast<float>(random[k]()) * 0x1p-32f;
          actions.push_back(spec.action_low[a] + unit * (spec.action_high[a] - spec.action_low[a]));
        }
      }
      std::vector<double> rewards(live.size());
      auto dones = std::make_unique<bool[]>(live.size());
      pool.Step(live_slots, actions.data(), rewards.data(), dones.get());
      const std::vector<double> seen = Observe(live_slots);
      std::vector<size_t> still_live;
      for (size_t i = 0; i < live.size(); ++i) {
        RobotEpisode& episode = episodes[live[i]];
        episode.observations.insert(episode.observations.end(), &seen[i * size], &seen[i * size] + size);
        episode.rewards.push_back(rewards[i]);
        episode.done = dones[i];
        if (!dones[i]) still_live.push_back(live[i]);
      }
      live = std::move(still_live);
    }
    for (size_t k = 0; k < slots.size(); ++k) {
      episodes[k].state.resize(spec.state_size);
      episodes[k].behavior.resize(2);
      pool.State({slots[k]}, episodes[k].state.data());
      pool.Behavior({slots[k]}, episodes[k].behavior.data());
    }
    return episodes;
  }
};

}  // namespace neuroevo

#endif  // NEUROEVO_TESTS_NATIVE_ENVS_MUJOCO_ROBOTS_H_
