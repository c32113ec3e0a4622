// Episodes that follow others have the results of episodes that are played alone: on a toy whose episodes meet often.
#include "rollout/shared_plays.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "envs/env_pool.h"
#include "native/check.h"
#include "rollout/lane_runner.h"

using namespace neuroevo;

namespace {

constexpr int64_t kSkip = 4, kQuiet = 40, kLimit = 500;

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  return z ^ (z >> 27);
}

// A game that starts after seed % 30 frames and ignores actions in its first kQuiet frames. An observation shows the
// last action as well, so that episodes of equal phase do not meet at once.
class Meeting : public Env {
 public:
  explicit Meeting(bool absolute) : absolute_(absolute) {}

  void Reset(uint64_t seed, int64_t max_frames) override {
    frame_ = static_cast<int64_t>(seed % 30);
    last_frame_ = absolute_ ? kLimit : frame_ + kLimit;
    if (max_frames > 0) last_frame_ = std::min(last_frame_, frame_ + max_frames);
    value_ = 1;
    action_ = 0;
  }
  StepResult Step(const void* action) override {
    action_ = *static_cast<const int32_t*>(action);
    double reward = 0;
    bool done = false;
    for (int64_t i = 0; i < kSkip && !done; ++i) {
      ++frame_;
      if (frame_ > kQuiet) value_ = Mix(value_ * 3 + static_cast<uint64_t>(action_) + 1);
      reward += static_cast<double>(value_ % 7);
      done = value_ % 197 == 0 || value_ % 1499 == 0 || frame_ >= last_frame_;
    }
    return {reward, done};
  }
  void Observe(void* out) const override {
    const float observation[] = {Part(0), Part(1), Part(2), static_cast<float>(action_)};
    std::copy(std::begin(observation), std::end(observation), static_cast<float*>(out));
  }
  void Behavior(void* out) const override { *static_cast<float*>(out) = Part(1) + static_cast<float>(frame_); }
  std::string Failure() const override { return value_ % 1499 == 0 ? "the game broke" : ""; }
  std::optional<StateKey> Key() const override {
    Hash128 hash;
    hash.Add(frame_);
    hash.Add(static_cast<int64_t>(value_));
    hash.Add(action_);
    return StateKey{hash.value(), last_frame_ - frame_};
  }

 private:
  float Part(int i) const { return static_cast<float>(value_ >> (16 * i) & 0xffff) / 32768 - 1; }

  const bool absolute_;
  int64_t frame_ = 0, last_frame_ = 0;
  uint64_t value_ = 0;
  int32_t action_ = 0;
};

class MeetingFactory : public EnvFactory {
 public:
  explicit MeetingFactory(const EnvOptions& given) {
    OptionReader options("meeting", given);
    absolute_ = options.Bool("absolute", false);
    options.Finish();
    spec_.observation_shape = {4};
    spec_.num_actions = 3;
    spec_.frame_skip = kSkip;
    spec_.behavior_shape = {1};
    spec_.keyed = true;
  }
  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<Meeting>(absolute_); }

 private:
  EnvSpec spec_;
  bool absolute_;
};

const bool registered =
    RegisterEnvFamily("meeting", [](const EnvOptions& options) { return std::make_unique<MeetingFactory>(options); });

struct Setup {
  int64_t lanes = 2, slots = 3;
  std::string absolute = "false";
  int64_t every = 0, samples = 1;  // of the behavior
  std::string network = "input float32 4; dense 8 1.0; tanh; dense 3 1.0";
};

struct Played {
  std::map<int64_t, EpisodeResult> results;
  int64_t steps = 0;  // that were played
};

Played PlayAll(const Setup& setup, std::vector<QueuedEpisode> episodes) {
  const auto pool = std::make_shared<ThreadPool>(2);
  const int64_t slots = setup.lanes * setup.slots, count = static_cast<int64_t>(episodes.size());
  EnvPool envs("meeting", {{"absolute", setup.absolute}}, slots, pool);
  if (setup.samples > 0) envs.RecordBehaviors(setup.every, setup.samples);
  const auto population = Population::Make("cpu", {Network::Parse(setup.network)}, slots, pool);
  EpisodeQueue queue(setup.lanes, setup.slots, 0);
  LaneRunner lanes(&envs, population.get(), &queue);
  queue.Submit(std::move(episodes), 3);
  Played played;
  while (static_cast<int64_t>(played.results.size()) < count) {
    for (EpisodeResult& result : queue.Results(1, std::chrono::seconds(1))) {
      CHECK(played.results.emplace(result.id, std::move(result)).second);
    }
    lanes.RethrowFailure();
  }
  played.steps = queue.TotalSteps();
  return played;
}

std::vector<QueuedEpisode> Episodes(int64_t genomes, int64_t each, uint32_t seed, bool limits) {
  std::mt19937 random(seed);
  std::vector<QueuedEpisode> episodes;
  for (int64_t g = 0; g < genomes; ++g) {
    auto recipe = std::make_shared<GenomeRecipe>();
    recipe->id = g;
    recipe->seed = random();
    for (int64_t e = 0; e < each; ++e) {
      const int64_t frames = limits ? static_cast<int64_t>(random() % 200) : 0;
      episodes.push_back({static_cast<int64_t>(episodes.size()), random(), frames, recipe});
    }
  }
  std::shuffle(episodes.begin(), episodes.end(), random);
  return episodes;
}

// The episodes with a genome for each, which therefore cannot follow each other.
std::vector<QueuedEpisode> Apart(std::vector<QueuedEpisode> episodes) {
  for (QueuedEpisode& episode : episodes) {
    auto recipe = std::make_shared<GenomeRecipe>(*episode.genome);
    recipe->id = episode.id;
    episode.genome = std::move(recipe);
  }
  return episodes;
}

void CheckEqual(const Played& found, const Played& expected) {
  CHECK_EQ(found.results.size(), expected.results.size());
  for (const auto& [id, result] : expected.results) {
    const EpisodeResult& other = found.results.at(id);
    CHECK_EQ(other.total_reward, result.total_reward);
    CHECK_EQ(other.steps, result.steps);
    CHECK_EQ(other.end.failure, result.end.failure);
    CHECK(other.end.behavior == result.end.behavior);
  }
}

int64_t StepsOf(const Played& played) {
  int64_t steps = 0;
  for (const auto& [id, result] : played.results) steps += result.steps;
  return steps;
}

}  // namespace

TEST(ResultsEqualThoseOfEpisodesThatArePlayedAlone) {
  int64_t failures = 0, cut = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    for (const char* absolute : {"false", "true"}) {
      for (const bool limits : {false, true}) {
        const std::vector<QueuedEpisode> episodes = Episodes(5, 25, seed, limits);
        const Setup alone{2, 8, absolute};
        const Played expected = PlayAll(alone, Apart(episodes));
        CHECK_EQ(expected.steps, StepsOf(expected));
        for (const auto& [id, result] : expected.results) {
          failures += !result.end.failure.empty();
          cut += result.steps >= kLimit / kSkip - 8;
        }
        for (const auto& [lanes, slots] : {std::pair<int64_t, int64_t>{1, 1}, {2, 3}, {3, 50}}) {
          const Played found = PlayAll({lanes, slots, absolute}, episodes);
          CheckEqual(found, expected);
          if (!limits) CHECK(found.steps < expected.steps);
        }
      }
    }
  }
  CHECK(failures > 10 && cut > 20);
}

TEST(MostStepsAreShared) {
  const std::vector<QueuedEpisode> episodes = Episodes(4, 100, 5, false);
  const Played found = PlayAll({2, 50}, episodes);
  CHECK(found.steps * 3 < StepsOf(found));
}

TEST(NothingIsSharedWhereTheEndDependsOnEarlierSteps) {
  const std::vector<QueuedEpisode> episodes = Episodes(3, 30, 6, false);
  Setup trajectories{2, 3};
  trajectories.every = 3;
  trajectories.samples = 5;
  Setup recurrent{2, 3};
  recurrent.network = "input float32 4; lstm 3 1.0; dense 3 1.0";
  for (const Setup& setup : {trajectories, recurrent}) {
    const Played found = PlayAll(setup, episodes);
    CHECK_EQ(found.steps, StepsOf(found));
    CheckEqual(found, PlayAll(setup, Apart(episodes)));
  }
}

TEST(WithoutBehaviors) {
  const std::vector<QueuedEpisode> episodes = Episodes(3, 30, 7, true);
  Setup setup{2, 3};
  setup.samples = 0;
  CheckEqual(PlayAll(setup, episodes), PlayAll(setup, Apart(episodes)));
}

TEST(HashesOfDifferentStatesDiffer) {
  std::map<Hash128::Value, std::vector<uint8_t>> seen;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bytes(random() % 40);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 2);
    Hash128 hash;
    hash.Add(bytes.data(), bytes.size());
    CHECK(seen.try_emplace(hash.value(), bytes).first->second == bytes);
  }
  CHECK(seen.size() > 10000);
}
