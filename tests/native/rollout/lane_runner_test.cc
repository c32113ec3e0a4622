// The lane runner on a toy environment: the same results as playing one episode after the other with the reference
// backend, whatever the lanes, slots and threads; and errors that reach the caller instead of hanging. (Vectors of
// actions and normalizers are in lane_vectors_test.cc.)
#include "rollout/lane_runner.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

const char kNetwork[] = "input float32 4; dense 8 1.0; bias; tanh; dense 3 1.0; bias";
const char kWideNetwork[] = "input float32 4; dense 20 1.0; vbn; bias; relu; dense 3 1.0; bias";

// Callback after a given number of steps of a toy, for tests that act in the middle of a run.
struct Bell {
  std::mutex mutex;
  std::condition_variable changed;
  int64_t steps = 0;
  void Ring() {
    std::lock_guard<std::mutex> lock(mutex);
    ++steps;
    changed.notify_all();
  }
  void Await(int64_t wanted) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return steps >= wanted; });
  }
};
Bell bell;

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  return z ^ (z >> 27);
}

// A walk in which everything (observation, reward, length) depends on the seed, the step and all actions so far.
class Walk : public Env {
 public:
  Walk(uint64_t bad_seed, bool endless) : bad_seed_(bad_seed), endless_(endless) {}

  void Reset(uint64_t seed, int64_t max_frames) override {
    seed_ = seed;
    state_ = Mix(seed + 1);
    steps_ = 0;
    last_step_ = max_frames == 0 ? 200 : max_frames / 2;
    if (bad_seed_ != 0 && seed == bad_seed_ + 1) ThrowInvalid("no walk with seed ", seed);
  }
  StepResult Step(const void* action) override {
    const int32_t button = *static_cast<const int32_t*>(action);
    state_ = Mix(state_ * 3 + button + 1);
    ++steps_;
    if (bad_seed_ != 0 && seed_ == bad_seed_ && steps_ == 5) ThrowInvalid("walk ", seed_, " stumbled");
    if (endless_) bell.Ring();
    return {static_cast<double>(state_ % 1000) / 7 + button, !endless_ && (steps_ >= last_step_ || state_ % 37 == 0)};
  }
  void Observe(void* out) const override {
    auto* values = static_cast<float*>(out);
    for (int i = 0; i < 4; ++i) values[i] = static_cast<float>(state_ >> (16 * i) & 0xffff) / 32768 - 1;
  }

 private:
  const uint64_t bad_seed_;
  const bool endless_;
  uint64_t seed_ = 0, state_ = 0;
  int64_t steps_ = 0, last_step_ = 0;
};

class WalkFactory : public EnvFactory {
 public:
  explicit WalkFactory(const EnvOptions& given) {
    OptionReader options("walk", given);
    bad_seed_ = options.Int("bad_seed", 0, 0, 1'000'000);
    endless_ = options.Int("endless", 0, 0, 1) == 1;
    spec_.observation_shape = {options.Int("size", 4, 4, 100)};
    const std::string dtype = options.String("dtype", "float32");
    spec_.observation_dtype = dtype == "int32" ? DType::kInt32 : DType::kFloat32;
    spec_.action_dtype = options.String("actions", "discrete") == "vector" ? DType::kFloat32 : DType::kInt32;
    spec_.num_actions = options.Int("num_actions", 3, 1, 9);
    if (!spec_.discrete()) {
      spec_.action_low.assign(spec_.num_actions, -1);
      spec_.action_high.assign(spec_.num_actions, 1);
    }
    spec_.frame_skip = 2;
    options.Finish();
  }
  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<Walk>(bad_seed_, endless_); }

 private:
  EnvSpec spec_;
  uint64_t bad_seed_;
  bool endless_;
};

const bool registered =
    RegisterEnvFamily("walk", [](const EnvOptions& options) { return std::make_unique<WalkFactory>(options); });

constexpr int64_t kParents = 2, kReference = 11;

// Observations for the vbn layer's statistics.
std::vector<float> Reference() {
  std::vector<float> values(4 * kReference);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(Mix(i) & 0xffff) / 32768 - 1;
  return values;
}

std::unique_ptr<Population> MakePopulation(const std::string& backend, int64_t rows,
                                           const std::shared_ptr<ThreadPool>& pool) {
  auto population =
      Population::Make(backend, {Network::Parse(kNetwork), Network::Parse(kWideNetwork)}, kParents + rows, pool);
  population->Init({0, 1}, {0, 1}, {71, 72});
  population->SetReference(Reference().data(), kReference);
  population->Prepare({0, 1});
  return population;
}

constexpr int64_t kThetas = 3, kThetaSize = 163;  // D of the wide network; the other one takes a part of it

// [kThetas, kThetaSize]
std::vector<float> ThetaValues() {
  std::vector<float> values;
  for (int64_t i = 0; i < kThetas * kThetaSize; ++i)
    values.push_back(static_cast<float>(Mix(static_cast<uint64_t>(i) + 1) % 201) / 100 - 1);
  return values;
}

// Which theta a genome starts from, or -1; most do so with a chain.
int64_t ThetaIndex(int64_t genome) { return genome % 5 != 0 && genome % 3 == 1 ? genome / 3 % kThetas : -1; }

// 64 genomes of all kinds and 120 episodes, several of some genomes.
std::vector<QueuedEpisode> Episodes() {
  const std::vector<float> values = ThetaValues();
  std::vector<Theta> thetas;
  for (auto theta = values.begin(); theta != values.end(); theta += kThetaSize) {
    thetas.push_back(std::make_shared<const std::vector<float>>(theta, theta + kThetaSize));
  }
  std::vector<std::shared_ptr<const GenomeRecipe>> genomes;
  for (int64_t g = 0; g < 64; ++g) {
    auto genome = std::make_shared<GenomeRecipe>();
    genome->id = g;
    genome->source_row = g % 5 == 0 ? g / 5 % kParents : -1;
    genome->network = static_cast<int32_t>(g % 2);
    genome->seed = g % 7;
    if (ThetaIndex(g) >= 0) genome->theta = thetas[ThetaIndex(g)];
    for (int64_t m = 0; m < g % 4; ++m) {
      // Rows 0 and 1 are of networks 0 and 1.
      const int64_t network = genome->source_row < 0 ? genome->network : genome->source_row;
      genome->chain.push_back({static_cast<uint64_t>(g * 10 + m), 0.5f, g % 3 == 0 ? network : -1});
    }
    genomes.push_back(std::move(genome));
  }
  std::vector<QueuedEpisode> episodes;
  for (int64_t e = 0; e < 120; ++e) {
    episodes.push_back({e, static_cast<uint64_t>(1000 + e), e % 3 == 0 ? 10 + e : 0, genomes[e * 11 % 64]});
  }
  return episodes;
}

// Plays the episodes one after another, with the reference backend.
std::map<int64_t, EpisodeResult> PlayInTurn(const std::vector<QueuedEpisode>& episodes) {
  const auto population = MakePopulation("reference", 1, std::make_shared<ThreadPool>(1));
  constexpr int64_t kRow = kParents;
  Walk walk(0, false);
  std::map<int64_t, EpisodeResult> results;
  for (const QueuedEpisode& episode : episodes) {
    const GenomeRecipe& genome = *episode.genome;
    int64_t row = genome.source_row;
    if (row < 0) {
      row = kRow;
      if (genome.theta) {
        population->Assign({row}, {genome.network}, genome.theta->data(), kThetaSize);
      } else {
        population->Init({row}, {genome.network}, {genome.seed});
      }
    }
    for (const auto& [seed, scale, spread] : genome.chain) {
      population->Perturb({kRow}, {row}, {seed}, {scale}, {spread});
      row = kRow;
    }
    population->Prepare({row});
    EpisodeResult result{episode.id};
    walk.Reset(episode.seed, episode.max_frames);
    for (bool over = false; !over;) {
      float observation[4], outputs[3];
      walk.Observe(observation);
      population->Forward({row}, observation, outputs);
      const int32_t action = static_cast<int32_t>(std::max_element(outputs, outputs + 3) - outputs);
      const StepResult step = walk.Step(&action);
      result.total_reward += step.reward;
      result.steps += 1;
      over = step.done;
    }
    results[episode.id] = result;
  }
  return results;
}

struct Setup {
  int64_t lanes, slots;
  int threads = 2;
  std::string backend = "cpu";
};

// Arguments of RunLanes.
struct Run {
  std::shared_ptr<ThreadPool> pool;
  EnvPool envs;
  std::unique_ptr<Population> population;
  EpisodeQueue queue;

  explicit Run(const Setup& setup, const EnvOptions& options = {})
      : pool(std::make_shared<ThreadPool>(setup.threads)),
        envs("walk", options, setup.lanes * setup.slots, pool),
        population(MakePopulation(setup.backend, setup.lanes * setup.slots, pool)),
        queue(setup.lanes, setup.slots, kParents) {}

  std::vector<EpisodeResult> Play(std::vector<QueuedEpisode> episodes) {
    const int64_t count = static_cast<int64_t>(episodes.size());
    queue.Submit(std::move(episodes));
    return RunLanes(&envs, population.get(), &queue, count);
  }
};

void CheckResults(const std::vector<EpisodeResult>& results, const std::map<int64_t, EpisodeResult>& expected) {
  std::map<int64_t, EpisodeResult> by_id;
  for (const EpisodeResult& result : results) CHECK(by_id.emplace(result.id, result).second);
  CHECK_EQ(by_id.size(), expected.size());
  for (const auto& [id, result] : expected) {
    CHECK_EQ(by_id.at(id).total_reward, result.total_reward);
    CHECK_EQ(by_id.at(id).steps, result.steps);
  }
}

QueuedEpisode EpisodeOf(int64_t id, uint64_t seed, const GenomeRecipe& genome, int64_t max_frames = 0) {
  return {id, seed, max_frames, std::make_shared<GenomeRecipe>(genome)};
}

// The good episodes with a bad one among them.
std::vector<QueuedEpisode> WithBad(const QueuedEpisode& bad) {
  std::vector<QueuedEpisode> episodes = Episodes();
  episodes.insert(episodes.begin() + 40, bad);
  return episodes;
}

}  // namespace

TEST(EqualsPlayingInTurn) {
  const std::vector<QueuedEpisode> episodes = Episodes();
  const std::map<int64_t, EpisodeResult> expected = PlayInTurn(episodes);
  int64_t least = 1000, most = 0;
  for (const auto& [id, result] : expected) {
    least = std::min(least, result.steps);
    most = std::max(most, result.steps);
  }
  CHECK(least < 5 && most > 60);  // the toy makes episodes of very different lengths
  for (int threads : {1, 2, 4}) {
    for (const auto& [lanes, slots] : {std::pair<int64_t, int64_t>{1, 1}, {2, 8}, {3, 5}}) {
      Run run({lanes, slots, threads});
      CheckResults(run.Play(episodes), expected);
    }
  }
  Run reference({3, 5, 2, "reference"});
  CheckResults(reference.Play(episodes), expected);
  std::vector<QueuedEpisode> reversed(episodes.rbegin(), episodes.rend());
  Run backwards({2, 3});
  CheckResults(backwards.Play(reversed), expected);
}

TEST(MoreSlotsThanEpisodes) {
  std::vector<QueuedEpisode> episodes = Episodes();
  episodes.resize(5);
  Run run({3, 4});
  CheckResults(run.Play(episodes), PlayInTurn(episodes));
}

TEST(NoEpisodes) {
  Run run({2, 2});
  CHECK_EQ(run.Play({}).size(), 0);
}

TEST(TheQueueIsClosedAfterwardsAndTheRestCanBeUsedAgain) {
  const std::vector<QueuedEpisode> episodes = Episodes();
  Run run({2, 4});
  run.Play(episodes);
  CHECK_THROWS(run.queue.Submit(episodes), "the episode queue is closed");
  EpisodeQueue next(2, 4, kParents);
  next.Submit(episodes);
  CheckResults(RunLanes(&run.envs, run.population.get(), &next, 120), PlayInTurn(episodes));
}

TEST(ErrorsReachTheCaller) {
  GenomeRecipe good;
  good.id = 500;
  GenomeRecipe no_network = good, unfilled = good;
  no_network.network = 2;
  for (int threads : {1, 3}) {
    for (const auto& [lanes, slots] : {std::pair<int64_t, int64_t>{1, 1}, {3, 4}}) {
      const Setup setup{lanes, slots, threads};
      Run stumbling(setup, {{"bad_seed", "77"}});
      CHECK_THROWS(stumbling.Play(WithBad(EpisodeOf(900, 77, good))), "walk 77 stumbled");
      Run unstartable(setup, {{"bad_seed", "77"}});
      CHECK_THROWS(unstartable.Play(WithBad(EpisodeOf(900, 78, good))), "no walk with seed 78");
      Run strange(setup);
      CHECK_THROWS(strange.Play(WithBad(EpisodeOf(900, 1, no_network))), "network 2 is out of range [0, 2)");
      Run negative(setup);
      CHECK_THROWS(negative.Play(WithBad(EpisodeOf(900, 1, good, -4))), "is -4, expected 0 or more");

      Run few_rows(setup);  // the queue uses rows that the population does not have
      EpisodeQueue far(lanes, slots, 1000);
      far.Submit(Episodes());
      CHECK_THROWS(RunLanes(&few_rows.envs, few_rows.population.get(), &far, 120), "is out of range [0, ");

      Run empty_row(setup);
      empty_row.population =
          Population::Make("cpu", {Network::Parse(kNetwork)}, kParents + lanes * slots, empty_row.pool);
      unfilled.source_row = 1;
      CHECK_THROWS(empty_row.Play({EpisodeOf(0, 1, unfilled)}), "row 1 has no network yet");

      // The failed run has no effect on later episodes of the environments.
      EpisodeQueue next(lanes, slots, kParents);
      next.Submit(Episodes());
      CheckResults(RunLanes(&stumbling.envs, stumbling.population.get(), &next, 120), PlayInTurn(Episodes()));
    }
  }
}

TEST(MismatchesAreErrors) {
  const Setup setup{2, 3};
  Run vectors(setup, {{"actions", "vector"}, {"num_actions", "2"}});
  CHECK_THROWS(vectors.Play(Episodes()), "the networks have 3 outputs, expected one per action: 2, or 2 or more bins");
  Run actions(setup, {{"num_actions", "4"}});
  CHECK_THROWS(actions.Play(Episodes()), "the networks have 3 outputs, expected one per action: 4");
  Run size(setup, {{"size", "5"}});
  CHECK_THROWS(size.Play(Episodes()),
               "the environment's observations are 20 bytes of float32, expected the networks' input: 16 bytes of "
               "float32");
  Run dtype(setup, {{"dtype", "int32"}});
  CHECK_THROWS(dtype.Play(Episodes()), "16 bytes of int32, expected the networks' input: 16 bytes of float32");
  Run slots(setup);
  EpisodeQueue other(2, 4, kParents);
  CHECK_THROWS(RunLanes(&slots.envs, slots.population.get(), &other, 0), "the env pool has 6 slots, expected 8");
}

TEST(AQueueThatIsClosedEndsTheRun) {
  Run closed({2, 3});
  closed.queue.Close();
  CHECK_THROWS(RunLanes(&closed.envs, closed.population.get(), &closed.queue, 5),
               "the episode queue was closed after 0 of 5 episodes");
  // In the middle of episodes that would never end.
  Run endless({2, 3}, {{"endless", "1"}});
  std::thread closer([&] {
    bell.Await(100);
    endless.queue.Close();
  });
  std::string message;
  try {
    endless.Play(Episodes());
  } catch (const Error& e) {
    CHECK(e.kind() == Error::Kind::kCancelled);
    message = e.what();
  }
  closer.join();
  CHECK_EQ(message, "the episode queue was closed after 0 of 120 episodes");
}

TEST(LanesWaitForLateEpisodes) {
  const std::vector<QueuedEpisode> episodes = Episodes();
  Run run({3, 2});
  std::thread submitter([&] {
    for (const QueuedEpisode& episode : episodes) run.queue.Submit({episode});
  });
  const auto results = RunLanes(&run.envs, run.population.get(), &run.queue, 120);
  submitter.join();
  CheckResults(results, PlayInTurn(episodes));
}
