// The Atari family: replays, independence of other episodes, the protocol's start and time limit, and invalid ROM
// files. Parity with ale-py is tested from Python, options in options_test.cc.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "envs/env_pool.h"
#include "native/check.h"
#include "native/envs/atari/games.h"

using namespace neuroevo;

namespace {

int64_t Different(const std::vector<uint64_t>& hashes) {
  std::vector<uint64_t> sorted = hashes;
  std::sort(sorted.begin(), sorted.end());
  return std::unique(sorted.begin(), sorted.end()) - sorted.begin();
}

// The documented number of no-ops at reset.
int Noops(uint64_t seed) {
  uint64_t z = seed + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return 1 + static_cast<int>((z ^ (z >> 31)) % 30);
}

// File in the temporary folder, removed at the end.
struct File {
  std::filesystem::path path;
  File(const std::string& name, const std::string& content)
      : path(std::filesystem::temp_directory_path() / ("neuroevo_atari_test_" + std::to_string(std::rand()))) {
    std::filesystem::create_directories(path);
    path /= name;
    std::ofstream(path, std::ios::binary) << content;
  }
  ~File() { std::filesystem::remove_all(path.parent_path()); }
};

void CheckNoRom(const std::string& rom, const std::string& message) {
  CHECK_THROWS(EnvPool("atari", {{"rom", rom}}, 1, std::make_shared<ThreadPool>(1)), message);
}

}  // namespace

TEST(PoolsOfDifferentGamesAtOnce) {
  // The first test, so that concurrent threads initialize the emulators' shared state: pools are created while other
  // pools are stepped.
  const std::vector<std::string> names = {"pong", "space_invaders"};
  std::vector<std::vector<Episode>> episodes(names.size());
  std::vector<std::string> failures(names.size());
  for (const auto& name : names) Rom(name);  // skips this test, which a thread cannot
  std::vector<std::thread> threads;
  for (size_t t = 0; t < names.size(); ++t) {
    threads.emplace_back([&, t] {
      try {
        episodes[t] = Games(names[t], 2, 2).Play({0, 1}, {1, 1}, 15);
      } catch (const std::exception& e) {
        failures[t] = e.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t t = 0; t < names.size(); ++t) {
    CHECK_EQ(failures[t], "");
    const Episode alone = Games(names[t], 1, 1).Play({0}, {1}, 15)[0];
    for (const Episode& episode : episodes[t]) CHECK(episode == alone);
  }
}

TEST(SpecificationAndRangeOfActions) {
  Games games("breakout", 1, 1);
  const EnvSpec& spec = games.pool.spec();
  CHECK_EQ(spec.observation_dtype, DType::kUint8);
  CHECK_EQ(spec.observation_shape, (std::vector<int64_t>{84, 84, 4}));
  CHECK_EQ(spec.observation_bytes(), kObservation);
  CHECK(spec.discrete());
  CHECK_EQ(spec.frame_skip, 4);
  games.Reset({0}, {1});
  for (int32_t action : {-1, 4, 17}) {
    double reward;
    bool done;
    CHECK_THROWS(games.pool.Step({0}, &action, &reward, &done),
                 "action " + std::to_string(action) + " of slot 0 is out of range [0, 4)");
  }
}

TEST(ReplaysAreIdentical) {
  // Frostbite and Seaquest differ after reset_game; Breakout has FIRE and a paddle.
  const struct {
    const char* name;
    int64_t actions;
  } cases[] = {{"frostbite", 18}, {"seaquest", 18}, {"breakout", 4}};
  for (const auto& [name, actions] : cases) {
    Games games(name, 2, 2);
    CHECK_EQ(games.pool.spec().num_actions, actions);  // the minimal set
    const Episode first = games.Play({0}, {11}, 60)[0];
    CHECK(Different(first.observations) > 30);  // there was something to see
    games.Play({0, 1}, {3, 4}, 50);             // other episodes in between
    CHECK(games.Play({0}, {11}, 60)[0] == first);
    CHECK(games.Play({1}, {11}, 60)[0] == first);
    CHECK(!(games.Play({1}, {12}, 60)[0] == first));
    CHECK(Games(name, 1, 1).Play({0}, {11}, 60)[0] == first);
  }
}

TEST(ReplaysAreIdenticalFromTheMiddleOfAFrame) {
  // Where these two games are after loading, and where cloneState alone is not enough.
  for (const char* game : {"qbert", "tetris"}) {
    Games games(game, 1, 1);
    const Episode first = games.Play({0}, {11}, 50)[0];  // in Q*bert, a reward would come or not
    games.Play({0}, {3}, 20);
    CHECK(games.Play({0}, {11}, 50)[0] == first);
  }
}

TEST(ReplaysAreIdenticalAfterAnEnd) {
  Games games("frostbite", 1, 1);
  const Episode first = games.Play({0}, {5}, 3000)[0];
  CHECK(first.done);
  CHECK(first.rewards.size() > 20);
  CHECK(games.Play({0}, {5}, 3000)[0] == first);
}

TEST(TogetherAsAlone) {
  constexpr int64_t kSlots = 5;
  std::vector<int64_t> slots;
  std::vector<uint64_t> seeds;
  for (int64_t s = 0; s < kSlots; ++s) {
    slots.push_back(kSlots - 1 - s);
    seeds.push_back(20 + s);
  }
  const std::vector<Episode> together = Games("breakout", kSlots, 4).Play(slots, seeds, 30);
  Games one("breakout", 1, 1);
  for (int64_t s = 0; s < kSlots; ++s) CHECK(one.Play({0}, {seeds[s]}, 30)[0] == together[s]);
}

TEST(NoopsFollowFromTheSeed) {
  Games games("frostbite", 1, 1);
  std::vector<uint64_t> same, others;
  for (uint64_t seed = 1; same.size() < 1 || others.size() < 2; ++seed) {
    (Noops(seed) == Noops(0) ? same : others).push_back(seed);
  }
  const auto first = [&](uint64_t seed) {
    games.Reset({0}, {seed});
    std::vector<uint64_t> hashes;
    for (int step = 0; step < 12; ++step) {
      const std::vector<uint8_t> seen = games.Observe({0});
      hashes.push_back(Hash(seen.data(), kObservation));
      const int32_t noop = 0;
      double reward;
      bool done;
      games.pool.Step({0}, &noop, &reward, &done);
    }
    return hashes;
  };
  const auto expected = first(0);
  for (uint64_t seed : same) CHECK_EQ(first(seed), expected);
  for (uint64_t seed : others) CHECK(first(seed) != expected);
  // Seeds whose counts are 4 apart see the same game one step apart.
  uint64_t late = 0;
  while (Noops(late) != Noops(0) + 4 && Noops(late) != Noops(0) - 4) ++late;
  const auto later = first(late);
  const int lag = Noops(late) > Noops(0) ? 1 : -1;
  for (int step = 4; step < 11; ++step) CHECK_EQ(later[step], expected[step + lag]);  // 4: the stacks are full
}

TEST(TheStackOfFrames) {
  Games games("breakout", 1, 1);
  games.Reset({0}, {7});
  std::vector<uint8_t> before = games.Observe({0});
  for (int p = 0; p < kFramePixels; ++p) {
    for (int i = 0; i < 3; ++i) CHECK_EQ(before[p * 4 + i], 0);  // there were no frames before the first
  }
  CHECK(std::any_of(before.begin(), before.end(), [](uint8_t x) { return x != 0; }));
  for (int step = 0; step < 10; ++step) {
    const int32_t action = step % 4;
    double reward;
    bool done;
    games.pool.Step({0}, &action, &reward, &done);
    const std::vector<uint8_t> after = games.Observe({0});
    for (int p = 0; p < kFramePixels; ++p) {
      for (int i = 0; i < 3; ++i) CHECK_EQ(after[p * 4 + i], before[p * 4 + i + 1]);
    }
    before = after;
  }
  games.Reset({0}, {7});
  const std::vector<uint8_t> again = games.Observe({0});
  for (int p = 0; p < kFramePixels; ++p) {
    for (int i = 0; i < 3; ++i) CHECK_EQ(again[p * 4 + i], 0);  // nothing of the last episode
  }
}

TEST(CutOffAtMaxFrames) {
  Games games("pong", 1, 1);
  for (const auto& [max_frames, steps] : {std::pair<int64_t, size_t>{4, 1}, {1, 1}, {6, 2}, {40, 10}, {41, 11}}) {
    const Episode episode = games.Play({0}, {9}, 20, max_frames)[0];
    CHECK(episode.done);
    CHECK_EQ(episode.rewards.size(), steps);
  }
  CHECK_EQ(games.Play({0}, {9}, 20, 0)[0].rewards.size(), 20);
  // Until the time limit, the episode equals that without a limit.
  const Episode whole = games.Play({0}, {9}, 10)[0], cut = games.Play({0}, {9}, 10, 40)[0];
  CHECK_EQ(whole.observations, cut.observations);
  CHECK(cut.done && !whole.done);
}

TEST(FilesThatAreNoRom) {
  const std::string rom = Rom("frostbite");
  CheckNoRom("/nonexistent/frostbite.bin", "ROM file '/nonexistent/frostbite.bin' does not exist");
  CheckNoRom(std::filesystem::temp_directory_path().string(), "does not exist");  // a folder
  CheckNoRom("", "atari needs the option rom=FILE");
  CheckNoRom(std::string(5000, 'x'), "");  // longer than any path may be
  const std::string message = "is not the ROM of a single-player game that ALE ";
  std::string noise(4096, '\0');
  std::mt19937 random(1);
  for (char& byte : noise) byte = static_cast<char>(random());
  CheckNoRom(File("noise.bin", noise).path.string(), message);
  CheckNoRom(File("frostbite.bin", noise).path.string(), message);  // the name alone does not make it
  CheckNoRom(File("frostbite.bin", "").path.string(), message);
  CheckNoRom(File("text.bin", "not a cartridge").path.string(), message);
  std::ifstream in(rom, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  CHECK_EQ(content.size(), 4096);
  CheckNoRom(File("frostbite.bin", content.substr(0, 4000)).path.string(), message);
  content[100] ^= 1;
  CheckNoRom(File("frostbite.bin", content).path.string(), message);
  CHECK_THROWS(EnvPool("atari", {}, 1, std::make_shared<ThreadPool>(1)), "atari needs the option rom=FILE");
  CHECK_THROWS(EnvPool("atari", {{"rom", rom}, {"frameskip", "2"}}, 1, std::make_shared<ThreadPool>(1)),
               "atari has no option 'frameskip'");
}
