// Atari games for tests: a pool of one game. Needs the ROMs' folder in NEUROEVO_ROMS.
#ifndef NEUROEVO_TESTS_NATIVE_ENVS_ATARI_GAMES_H_
#define NEUROEVO_TESTS_NATIVE_ENVS_ATARI_GAMES_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "envs/atari/screen.h"
#include "envs/env_pool.h"
#include "native/check.h"

namespace neuroevo {

// Some linkers drop a library of which nothing is used, and with it the registration of the family.
inline const ScreenToFrame link_atari({}, 1);

constexpr int64_t kObservation = kFramePixels * 4;

inline std::string Rom(const std::string& game) {
  const char* folder = std::getenv("NEUROEVO_ROMS");
  if (folder == nullptr || *folder == '\0') SKIP("NEUROEVO_ROMS is not set");
  return std::string(folder) + "/" + game + ".bin";
}

inline uint64_t Hash(const uint8_t* bytes, int64_t n) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t i = 0; i < n; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

// Observations and rewards of a player.
struct Episode {
  std::vector<uint64_t> observations;  // hashes, one more than steps
  std::vector<double> rewards;
  bool done = false;
  bool operator==(const Episode& other) const {
    return observations == other.observations && rewards == other.rewards && done == other.done;
  }
};

struct Games {
  EnvPool pool;

  Games(const std::string& game, int64_t slots, int threads, EnvOptions options = {})
      : pool("atari", WithRom(game, std::move(options)), slots, std::make_shared<ThreadPool>(threads)) {}

  void Reset(const std::vector<int64_t>& slots, const std::vector<uint64_t>& seeds, int64_t max_frames = 0) {
    const std::vector<int64_t> frames(slots.size(), max_frames);
    pool.Reset(slots, seeds, frames);
  }
  std::vector<uint8_t> Observe(const std::vector<int64_t>& slots) {
    std::vector<uint8_t> out(slots.size() * kObservation);
    pool.Observe(slots, out.data());
    return out;
  }

  // Plays up to `steps` random actions in each slot, the slots together. Actions follow from the slot's seed.
  std::vector<Episode> Play(const std::vector<int64_t>& slots, const std::vector<uint64_t>& seeds, int steps,
                            int64_t max_frames = 0) {
    Reset(slots, seeds, max_frames);
    std::vector<Episode> episodes(slots.size());
    std::vector<std::mt19937> random;
    for (uint64_t seed : seeds) random.emplace_back(static_cast<uint32_t>(seed));
    std::vector<size_t> live(slots.size());
    for (size_t k = 0; k < live.size(); ++k) live[k] = k;
    const auto observe = [&](const std::vector<int64_t>& live_slots) {
      const std::vector<uint8_t> seen = Observe(live_slots);
      for (size_t i = 0; i < live.size(); ++i) {
        episodes[live[i]].observations.push_back(Hash(seen.data() + i * kObservation, kObservation));
      }
    };
    observe(slots);
    for (int step = 0; step < steps && !live.empty(); ++step) {
      std::vector<int64_t> live_slots;
      std::vector<int32_t> actions;
      for (size_t k : live) {
        live_slots.push_back(slots[k]);
        actions.push_back(static_cast<int32_t>(random[k]() % pool.spec().num_actions));
      }
      std::vector<double> rewards(live.size());
      auto dones = std::make_unique<bool[]>(live.size());
      pool.Step(live_slots, actions.data(), rewards.data(), dones.get());
      observe(live_slots);
      std::vector<size_t> still_live;
      for (size_t i = 0; i < live.size(); ++i) {
        episodes[live[i]].rewards.push_back(rewards[i]);
        episodes[live[i]].done = dones[i];
        if (!dones[i]) still_live.push_back(live[i]);
      }
      live = std::move(still_live);
    }
    return episodes;
  }

  static EnvOptions WithRom(const std::string& game, EnvOptions options) {
    options["rom"] = Rom(game);
    return options;
  }
};

}  // namespace neuroevo

#endif  // NEUROEVO_TESTS_NATIVE_ENVS_ATARI_GAMES_H_
