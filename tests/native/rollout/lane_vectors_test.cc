// The lane runner on a toy robot: float64 observations, normalized or not, and action vectors with one output or
// several bins per component. Compared with sequential play, with normalization and policy reimplemented here.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "c_api/neuroevo.h"
#include "core/error.h"
#include "native/check.h"
#include "rollout/lane_runner.h"
#include "rollout/put_step.h"

using namespace neuroevo;

namespace {

constexpr int64_t kSize = 4, kActions = 2, kBins = 3;
constexpr float kLow[kActions] = {-1, 0.5f}, kHigh[kActions] = {3, 1};
constexpr uint64_t kBreaks = 13;  // seeds of this remainder to 40 break after 6 steps

// A point that swings as the actions, all of them since the start, push it.
class Robot : public Env {
 public:
  void Reset(uint64_t seed, int64_t max_frames) override {
    seed_ = seed;
    steps_ = 0;
    last_step_ = max_frames == 0 ? 60 : max_frames;
    place_ = static_cast<double>(seed % 97) / 10;
    broken_ = false;
  }
  StepResult Step(const void* action) override {
    const auto* push = static_cast<const float*>(action);
    ++steps_;
    broken_ = seed_ % 40 == kBreaks && steps_ == 6;
    if (broken_) return {0, true};
    place_ = std::fmod(place_ * 1.1 + static_cast<double>(push[0]) - static_cast<double>(push[1]) / 3, 20);
    return {place_, steps_ >= last_step_ || place_ > 19};
  }
  void Observe(void* out) const override {
    for (int64_t i = 0; i < kSize; ++i) static_cast<double*>(out)[i] = std::sin(place_ + static_cast<double>(i)) * 3;
  }
  std::string Failure() const override { return broken_ ? "the robot broke" : ""; }

 private:
  uint64_t seed_ = 0;
  int64_t steps_ = 0, last_step_ = 0;
  double place_ = 0;
  bool broken_ = false;
};

class RobotFactory : public EnvFactory {
 public:
  RobotFactory() {
    spec_.observation_dtype = DType::kFloat64;
    spec_.observation_shape = {kSize};
    spec_.action_dtype = DType::kFloat32;
    spec_.num_actions = kActions;
    spec_.action_low.assign(kLow, kLow + kActions);
    spec_.action_high.assign(kHigh, kHigh + kActions);
  }
  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<Robot>(); }

 private:
  EnvSpec spec_;
};

const bool registered = RegisterEnvFamily("robot", [](const EnvOptions&) { return std::make_unique<RobotFactory>(); });

const char kNumbers[] = "input float32 4; dense 6 1.0; bias; tanh; dense 2 1.0; bias";
const char kBinned[] = "input float32 4; dense 6 1.0; bias; tanh; dense 6 1.0; bias";

struct Values {
  std::vector<double> mean, std;
};
const std::map<int64_t, Values> kNormalizers = {{5, {{0, 1, -1, 0.5}, {1, 2, 0.3, 3}}},
                                                {6, {{1, 1, 1, 1}, {2, 2, 2, 2}}}};

// 90 episodes of 30 genomes, every seventh of which has infinite weights, and outputs that are NaN.
std::vector<QueuedEpisode> Episodes() {
  std::vector<std::shared_ptr<const GenomeRecipe>> genomes;
  for (int64_t g = 0; g < 30; ++g) {
    auto genome = std::make_shared<GenomeRecipe>();
    genome->id = g;
    genome->seed = g;
    const uint64_t seed = 100 + g;
    genome->chain = {{seed, 0.5f}};
    if (g % 7 == 3) genome->chain.assign(3, {seed, std::numeric_limits<float>::max()});
    genomes.push_back(std::move(genome));
  }
  std::vector<QueuedEpisode> episodes;
  for (int64_t e = 0; e < 90; ++e) {
    episodes.push_back(
        {e, static_cast<uint64_t>(e), e % 4 == 0 ? 3 + e % 20 : 0, genomes[e % 30], e % 3 == 0 ? -1 : 4 + e % 3});
  }
  return episodes;
}

// Return an observation in the form of the network's input.
void Normalize(int64_t normalizer, const double* seen, float* shown, std::vector<double>* sums) {
  for (int64_t i = 0; i < kSize; ++i) {
    shown[i] = static_cast<float>(seen[i]);
    if (normalizer < 0) continue;
    const Values& values = kNormalizers.at(normalizer);
    shown[i] = static_cast<float>(std::clamp((seen[i] - values.mean[i]) / values.std[i], -5.0, 5.0));
    (*sums)[1 + i] += seen[i];
    (*sums)[1 + kSize + i] += seen[i] * seen[i];
  }
  if (normalizer >= 0) (*sums)[0] += 1;
}

float ActionOf(const float* outputs, int64_t width, int64_t a) {
  if (width == kActions) return kLow[a] + (std::clamp(outputs[a], -1.0f, 1.0f) + 1) / 2 * (kHigh[a] - kLow[a]);
  const float* own = outputs + a * kBins;
  const auto best = std::max_element(own, own + kBins) - own;
  return std::isnan(own[0]) ? own[0] : kLow[a] + static_cast<float>(best) * (kHigh[a] - kLow[a]) / (kBins - 1);
}

std::map<int64_t, EpisodeResult> PlayInTurn(const char* network, const std::vector<QueuedEpisode>& episodes) {
  const auto population = Population::Make("reference", {Network::Parse(network)}, 1, std::make_shared<ThreadPool>(1));
  const int64_t width = population->networks().front().output_size();
  Robot robot;
  std::map<int64_t, EpisodeResult> results;
  for (const QueuedEpisode& episode : episodes) {
    population->Init({0}, {0}, {episode.genome->seed});
    for (const auto& [seed, scale, spread] : episode.genome->chain)
      population->Perturb({0}, {0}, {seed}, {scale}, {spread});
    EpisodeResult& result = results[episode.id];
    std::vector<double>& sums = result.end.observation_sums;
    if (episode.normalizer >= 0) sums.resize(1 + 2 * kSize);
    robot.Reset(episode.seed, episode.max_frames);
    for (bool over = false; !over;) {
      double seen[kSize];
      float shown[kSize], outputs[kActions * kBins], actions[kActions];
      robot.Observe(seen);
      Normalize(episode.normalizer, seen, shown, &sums);
      population->Forward({0}, shown, outputs);
      ++result.steps;
      over = true;
      for (int64_t a = 0; a < kActions; ++a) actions[a] = ActionOf(outputs, width, a);
      const auto bad = std::find_if(actions, actions + kActions, [](float x) { return !std::isfinite(x); }) - actions;
      if (bad < kActions) {
        CHECK(std::isnan(actions[bad]));
        result.end.failure = "action[" + std::to_string(bad) + "] is nan, expected a finite number";
        continue;
      }
      const StepResult step = robot.Step(actions);
      result.total_reward += step.reward;
      over = step.done;
      result.end.failure = robot.Failure();
    }
  }
  return results;
}

}  // namespace

TEST(EqualsPlayingInTurn) {
  const std::vector<QueuedEpisode> episodes = Episodes();
  for (const char* network : {kNumbers, kBinned}) {
    const std::map<int64_t, EpisodeResult> expected = PlayInTurn(network, episodes);
    std::map<std::string, int64_t> failures;
    for (const auto& [id, result] : expected) ++failures[result.end.failure];
    CHECK_EQ(failures.size(), 3);  // of an action, of the robot, none
    for (const auto& [failure, count] : failures) CHECK(count > 1);
    for (int threads : {1, 2, 4}) {
      for (const auto& [lanes, slots] : {std::pair<int64_t, int64_t>{1, 1}, {2, 3}}) {
        const auto pool = std::make_shared<ThreadPool>(threads);
        EnvPool envs("robot", {}, lanes * slots, pool);
        for (const auto& [number, values] : kNormalizers) envs.SetNormalizer(number, values.mean, values.std);
        const auto population = Population::Make("cpu", {Network::Parse(network)}, lanes * slots, pool);
        EpisodeQueue queue(lanes, slots, 0);
        queue.Submit(episodes);
        const auto results = RunLanes(&envs, population.get(), &queue, 90);
        CHECK_EQ(results.size(), 90);
        std::set<int64_t> ids;
        for (const EpisodeResult& result : results) {
          const EpisodeResult& in_turn = expected.at(result.id);
          CHECK(ids.insert(result.id).second);
          CHECK_EQ(result.total_reward, in_turn.total_reward);
          CHECK_EQ(result.steps, in_turn.steps);
          CHECK_EQ(result.end.failure, in_turn.end.failure);
          CHECK_EQ(result.end.observation_sums, in_turn.end.observation_sums);
          CHECK_EQ(result.end.behavior.size(), 0);  // a robot has none
        }
      }
    }
  }
}

TEST(AStepIsBookedWithWhatThePoolTells) {
  const auto pool = std::make_shared<ThreadPool>(2);
  EnvPool envs("robot", {}, 3, pool);
  EpisodeQueue queue(1, 3, 0);
  auto genome = std::make_shared<GenomeRecipe>();
  genome->id = 0;
  queue.Submit({{7, 1, 0, genome}, {8, 2, 1, genome}, {9, 3, 0, genome}});
  Refill refill;
  queue.Take(0, [&](Refill taken) { refill = std::move(taken); });
  envs.Reset(refill.slots, refill.seeds, refill.max_frames, refill.normalizers);
  const float actions[] = {0, 1, 0, 1, std::numeric_limits<float>::infinity(), 1};
  double rewards[3];
  bool dones[3];
  envs.Step(refill.slots, actions, rewards, dones);
  // A rejected Put takes no ends from the pool.
  CHECK_THROWS(PutStep(&queue, &envs, 1, refill.slots, rewards, dones), "lane 1 is out of range [0, 1)");
  const double four_rewards[] = {0, 0, 0, 0};
  const bool four_dones[] = {false, true, true, false};
  CHECK_THROWS(PutStep(&queue, &envs, 0, {0, 1, 2, 3}, four_rewards, four_dones), "slot 3 of lane 0 is out of range");
  const auto put = PutStep(&queue, &envs, 0, refill.slots, rewards, dones);
  CHECK_EQ(put.live.slots, std::vector<int64_t>{0});
  const auto results = queue.Results();
  CHECK_EQ(results.size(), 2);
  CHECK_EQ(results[0].id, 8);
  CHECK_EQ(results[0].end.failure + "|", "|");
  CHECK_EQ(results[1].id, 9);
  CHECK_EQ(results[1].end.failure, "action[0] is inf, expected a finite number");
  // A slot without an end in the pool records nothing.
  dones[0] = true;
  CHECK_THROWS(PutStep(&queue, &envs, 0, {0}, rewards, dones), "slot 0 has no finished episode");
  CHECK_EQ(queue.TotalSteps(), 3);
}

TEST(TheCInterface) {
  neuroevo_env_pool* envs = nullptr;
  CHECK_EQ(neuroevo_env_pool_make("robot", nullptr, 0, 2, &envs), 0);
  const auto& [number, values] = *kNormalizers.begin();
  const int64_t slots[] = {1, 0}, max_frames[] = {0, 1}, normalizers[] = {-1, number};
  const uint64_t seeds[] = {3, 4};
  CHECK_EQ(neuroevo_env_set_normalizer(envs, number, values.mean.data(), values.std.data(), kSize), 0);
  CHECK_EQ(neuroevo_env_reset(envs, slots, 2, seeds, max_frames, normalizers), 0);
  CHECK_EQ(neuroevo_env_drop_normalizers(envs, &number, 1), 0);
  double seen[2 * kSize];
  float shown[2 * kSize], expected[2 * kSize];
  CHECK_EQ(neuroevo_env_observe(envs, slots, 2, seen), 0);
  CHECK_EQ(neuroevo_env_observe_normalized(envs, slots, 2, shown), 0);
  std::vector<double> sums(1 + 2 * kSize);
  Normalize(-1, seen, expected, nullptr);
  Normalize(number, seen + kSize, expected + kSize, &sums);
  CHECK(std::equal(shown, shown + 2 * kSize, expected));
  const float outputs[] = {0, 0, std::numeric_limits<float>::quiet_NaN(), 1};
  float actions[2 * kActions];
  CHECK_EQ(neuroevo_env_actions(envs, outputs, 2, kActions, actions), 0);
  CHECK_EQ(actions[0], 1);
  CHECK(std::isnan(actions[2]) && actions[3] == 1);
  CHECK_EQ(neuroevo_env_actions(envs, outputs, 1, 3, actions), NEUROEVO_INVALID_ARGUMENT);
  CHECK_EQ(neuroevo_env_actions(envs, outputs, -1, kActions, actions), NEUROEVO_INVALID_ARGUMENT);
  CHECK_EQ(std::string(neuroevo_last_error()), "number of networks is -1, expected 0 or more");
  double rewards[2];
  uint8_t dones[2];
  CHECK_EQ(neuroevo_env_step(envs, slots, 2, actions, rewards, dones), 0);
  CHECK(dones[0] == 0 && dones[1] == 1);
  const char* failure = nullptr;
  CHECK_EQ(neuroevo_env_failure(envs, 0, &failure), 0);
  CHECK_EQ(std::string(failure), "action[0] is nan, expected a finite number");
  CHECK_EQ(neuroevo_env_reset(envs, slots, 2, seeds, max_frames, normalizers), NEUROEVO_NOT_FOUND);
  CHECK_EQ(std::string(neuroevo_last_error()), "normalizer 5 is not set");
  CHECK_EQ(neuroevo_env_reset(envs, slots, 2, seeds, max_frames, nullptr), 0);
  neuroevo_env_pool_free(envs);
}
