// Episodes as arrays: the results of BuildEpisodes, playing them with the C interface, and an error for every invalid
// value, before anything is read out of bounds.
#include "rollout/submission.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "c_api/neuroevo.h"
#include "c_api/rollout.h"
#include "core/error.h"
#include "native/check.h"
#include "rollout/lane_runner.h"

using namespace neuroevo;

namespace {

constexpr uint64_t kBreaks = 13;

// Observes sin of seed and steps, and is rewarded with the number of the action; its behavior is (seed, steps).
class Tally : public Env {
 public:
  void Reset(uint64_t seed, int64_t max_frames) override {
    seed_ = seed;
    steps_ = 0;
    last_step_ = max_frames == 0 ? 20 : max_frames;
  }
  StepResult Step(const void* action) override {
    ++steps_;
    return {static_cast<double>(*static_cast<const int32_t*>(action)), steps_ >= last_step_ || Broken()};
  }
  void Observe(void* out) const override {
    for (int64_t i = 0; i < 2; ++i) {
      static_cast<float*>(out)[i] = static_cast<float>(std::sin(static_cast<double>(seed_ * 5 + steps_ + 3 * i)));
    }
  }
  void Behavior(void* out) const override {
    static_cast<double*>(out)[0] = static_cast<double>(seed_);
    static_cast<double*>(out)[1] = static_cast<double>(steps_);
  }
  std::string Failure() const override { return Broken() ? "the tally broke" : ""; }

 private:
  bool Broken() const { return seed_ == kBreaks && steps_ == 4; }
  uint64_t seed_ = 0;
  int64_t steps_ = 0, last_step_ = 0;
};

class TallyFactory : public EnvFactory {
 public:
  TallyFactory() {
    spec_.observation_shape = {2};
    spec_.behavior_dtype = DType::kFloat64;
    spec_.behavior_shape = {2};
    spec_.num_actions = 3;
  }
  const EnvSpec& spec() const override { return spec_; }
  std::unique_ptr<Env> Make() override { return std::make_unique<Tally>(); }

 private:
  EnvSpec spec_;
};

const bool registered = RegisterEnvFamily("tally", [](const EnvOptions&) { return std::make_unique<TallyFactory>(); });

const char kNetwork[] = "input float32 2; dense 3 1.0; bias";  // D = 9
constexpr int64_t kSize = 9, kParents = 2, kLanes = 2, kSlots = 2;
constexpr double kMean[] = {0.25, -1}, kStd[] = {0.5, 3};

// 7 episodes of 4 genomes with 5 mutations and 2 thetas. Tests may invalidate the arrays or the pointers to them.
struct Arrays {
  std::vector<int64_t> episode_genomes = {0, 1, 2, 3, 0, 2, 2};
  std::vector<uint64_t> episode_seeds = {10, 11, 12, kBreaks, 14, ~uint64_t{0}, 16};
  std::vector<int64_t> episode_max_frames = {0, 1, 2, 0, 4, 5, 6};
  std::vector<int64_t> episode_normalizers = {-1, 3, -1, 3, 3, -1, -1};
  std::vector<int32_t> genome_networks = {0, 0, 0, 0};
  std::vector<int64_t> genome_sources = {-1, 1, -1, -1};
  std::vector<uint64_t> genome_seeds = {20, 0, 0, 23};
  std::vector<int64_t> genome_thetas = {-1, -1, 1, 0};
  std::vector<int64_t> chain_splits = {0, 2, 2, 5, 5};
  std::vector<uint64_t> chain_seeds = {30, 31, 32, 33, 34};
  std::vector<float> chain_scales = {0.5f, 0.25f, 1, 2, 3};
  std::vector<int64_t> chain_spreads = {-1, 1, 0, -1, 1};
  std::vector<float> thetas = std::vector<float>(2 * kSize, 0.125f);
  neuroevo_episodes episodes;

  Arrays()
      : episodes{7,
                 nullptr,
                 episode_genomes.data(),
                 episode_seeds.data(),
                 episode_max_frames.data(),
                 episode_normalizers.data(),
                 4,
                 nullptr,
                 genome_networks.data(),
                 genome_sources.data(),
                 genome_seeds.data(),
                 genome_thetas.data(),
                 5,
                 chain_splits.data(),
                 chain_seeds.data(),
                 chain_scales.data(),
                 chain_spreads.data(),
                 2,
                 thetas.data(),
                 kSize} {
    for (int64_t i = 0; i < kSize; ++i) thetas[i] = std::cos(static_cast<float>(i));
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  Submission submission() const {
    Submission in;
    in.num_episodes = episodes.num_episodes;
    in.episode_genomes = episodes.episode_genomes;
    in.episode_seeds = episodes.episode_seeds;
    in.episode_max_frames = episodes.episode_max_frames;
    in.episode_normalizers = episodes.episode_normalizers;
    in.num_genomes = episodes.num_genomes;
    in.genome_networks = episodes.genome_networks;
    in.genome_sources = episodes.genome_sources;
    in.genome_seeds = episodes.genome_seeds;
    in.genome_thetas = episodes.genome_thetas;
    in.num_mutations = episodes.num_mutations;
    in.chain_splits = episodes.chain_splits;
    in.chain_seeds = episodes.chain_seeds;
    in.chain_scales = episodes.chain_scales;
    in.chain_spreads = episodes.chain_spreads;
    in.num_thetas = episodes.num_thetas;
    in.thetas = episodes.thetas;
    in.theta_size = episodes.theta_size;
    return in;
  }
};

// Objects of the C interface.
struct Native {
  neuroevo_env_pool* envs = nullptr;
  neuroevo_population* population = nullptr;

  Native() {
    const char* network = kNetwork;
    const int64_t rows[] = {0, 1};
    const int32_t networks[] = {0, 0};
    const uint64_t seeds[] = {71, 72};
    CHECK_EQ(neuroevo_set_threads(2), NEUROEVO_OK);
    CHECK_EQ(neuroevo_env_pool_make("tally", nullptr, 0, kLanes * kSlots, &envs), NEUROEVO_OK);
    CHECK_EQ(neuroevo_env_set_normalizer(envs, 3, kMean, kStd, 2), NEUROEVO_OK);
    CHECK_EQ(neuroevo_env_record_behaviors(envs, 0, 1), NEUROEVO_OK);
    CHECK_EQ(neuroevo_population_make("cpu", &network, 1, kParents + kLanes * kSlots, "float32", -1, &population),
             NEUROEVO_OK);
    CHECK_EQ(neuroevo_population_init(population, rows, 2, networks, seeds), NEUROEVO_OK);
  }
  ~Native() {
    neuroevo_population_free(population);
    neuroevo_env_pool_free(envs);
  }
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;

  int Run(const neuroevo_episodes& episodes, const neuroevo_results** results, int64_t lanes = kLanes,
          int64_t slots = kSlots) const {
    neuroevo_rollout* rollout = nullptr;
    int code = neuroevo_rollout_start(envs, population, lanes, slots, kParents, &rollout);
    if (code == NEUROEVO_OK) code = neuroevo_rollout_submit(rollout, &episodes, 0);
    if (code == NEUROEVO_OK) code = neuroevo_rollout_results(rollout, episodes.num_episodes, 60'000, results);
    neuroevo_rollout_free(rollout);
    return code;
  }
};

}  // namespace

TEST(WhatIsBuilt) {
  const Arrays arrays;
  Submission in = arrays.submission();
  const std::vector<QueuedEpisode> episodes = BuildEpisodes(in);
  CHECK_EQ(episodes.size(), 7);
  for (int64_t e = 0; e < 7; ++e) {
    CHECK_EQ(episodes[e].id, e);
    CHECK_EQ(episodes[e].seed, arrays.episode_seeds[e]);
    CHECK_EQ(episodes[e].max_frames, arrays.episode_max_frames[e]);
    CHECK_EQ(episodes[e].normalizer, arrays.episode_normalizers[e]);
    CHECK_EQ(episodes[e].genome->id, arrays.episode_genomes[e]);
  }
  CHECK(episodes[0].genome == episodes[4].genome);
  const GenomeRecipe &first = *episodes[0].genome, &second = *episodes[1].genome, &third = *episodes[2].genome;
  CHECK_EQ(first.seed, 20);
  CHECK_EQ(first.chain.size(), 2);
  CHECK(first.chain[0].seed == 30 && first.chain[0].scale == 0.5f && first.chain[0].spread == -1);
  CHECK(first.chain[1].seed == 31 && first.chain[1].scale == 0.25f && first.chain[1].spread == 1);
  CHECK(first.source_row == -1 && !first.theta);
  CHECK(second.source_row == 1 && second.chain.empty());
  CHECK_EQ(*third.theta, std::vector<float>(kSize, 0.125f));
  CHECK_EQ(third.chain.size(), 3);
  CHECK_EQ((*episodes[3].genome->theta)[2], std::cos(2.0f));

  const int64_t ids[] = {70, 60, 50, 40, 30, 20, 10}, genome_ids[] = {5, 6, 7, 8};
  in.episode_ids = ids;
  in.genome_ids = genome_ids;
  in.episode_normalizers = in.genome_thetas = in.chain_spreads = nullptr;
  const std::vector<QueuedEpisode> named = BuildEpisodes(in);
  CHECK_EQ(named[2].id, 50);
  CHECK_EQ(named[2].genome->id, 7);
  CHECK(named[1].normalizer == -1 && !named[2].genome->theta);
  CHECK_EQ(named[0].genome->chain[1].spread, -1);
  CHECK_EQ(BuildEpisodes([] {
             Submission none;
             static const int64_t split = 0;
             none.chain_splits = &split;
             return none;
           }())
               .size(),
           0);
}

TEST(TheCInterfacePlaysThem) {
  const Arrays arrays;
  const Native native;
  const neuroevo_results* results = nullptr;
  CHECK_EQ(native.Run(arrays.episodes, &results), NEUROEVO_OK);
  const std::unique_ptr<const neuroevo_results, void (*)(const neuroevo_results*)> owner(results,
                                                                                         neuroevo_results_free);
  // In turn, by the reference backend.
  const auto pool = std::make_shared<ThreadPool>(1);
  EnvPool envs("tally", {}, 1, pool);
  envs.SetNormalizer(3, {kMean, kMean + 2}, {kStd, kStd + 2});
  envs.RecordBehaviors(0, 1);
  const auto population = Population::Make("reference", {Network::Parse(kNetwork)}, kParents + 1, pool);
  population->Init({0, 1}, {0, 0}, {71, 72});
  EpisodeQueue queue(1, 1, kParents);
  queue.Submit(BuildEpisodes(arrays.submission()));
  const auto expected = RunLanes(&envs, population.get(), &queue, 7);  // one slot: they end in their order

  CHECK(results->count == 7 && results->observation_sums_size == 5 && results->behavior_bytes == 16);
  int64_t steps = 0;
  std::set<int64_t> ids;
  for (int64_t i = 0; i < 7; ++i) {
    const int64_t e = results->ids[i];  // they come as they end
    CHECK(e >= 0 && e < 7 && ids.insert(e).second);
    const EpisodeEnd& end = expected[e].end;
    CHECK_EQ(expected[e].id, e);
    CHECK_EQ(results->returns[i], expected[e].total_reward);
    CHECK_EQ(results->steps[i], expected[e].steps);
    CHECK_EQ(std::string(results->failures[i]), end.failure);
    steps += expected[e].steps;
    CHECK_EQ(end.failure, e == 3 ? "the tally broke" : "");
    const bool normalized = arrays.episode_normalizers[e] == 3;
    CHECK_EQ(end.observation_sums.size(), normalized ? 5 : 0);
    const double* sums = results->observation_sums + 5 * i;
    CHECK_EQ(std::vector<double>(sums, sums + 5), normalized ? end.observation_sums : std::vector<double>(5));
    const uint8_t* behavior = results->behaviors + 16 * i;
    CHECK_EQ(std::vector<uint8_t>(behavior, behavior + 16), end.behavior);
  }
  CHECK_EQ(results->total_steps, steps);
  neuroevo_results_free(nullptr);
  neuroevo_rollout_free(nullptr);
}

TEST(ARolloutTakesEpisodesUntilItIsClosed) {
  Arrays arrays;
  const Native native;
  neuroevo_rollout* rollout = nullptr;
  CHECK_EQ(neuroevo_rollout_start(native.envs, native.population, kLanes, kSlots, kParents, &rollout), NEUROEVO_OK);
  const std::unique_ptr<neuroevo_rollout, void (*)(neuroevo_rollout*)> owner(rollout, neuroevo_rollout_free);
  std::vector<int64_t> ids(7), genome_ids(arrays.episodes.num_genomes);
  arrays.episodes.episode_ids = ids.data();
  arrays.episodes.genome_ids = genome_ids.data();
  int64_t over = 0;
  const auto await = [&](int64_t count) {
    while (over < count) {
      const neuroevo_results* results = nullptr;
      CHECK_EQ(neuroevo_rollout_results(rollout, count - over, 60'000, &results), NEUROEVO_OK);
      over += results->count;
      neuroevo_results_free(results);
    }
  };
  for (int64_t round = 0; round < 20; ++round) {  // new ids in each round
    std::iota(ids.begin(), ids.end(), 100 * round);
    std::iota(genome_ids.begin(), genome_ids.end(), 100 * round + 50);
    CHECK_EQ(neuroevo_rollout_submit(rollout, &arrays.episodes, 20 - round), NEUROEVO_OK);
  }
  await(140);
  CHECK_EQ(over, 140);
  const neuroevo_results* none = nullptr;
  CHECK_EQ(neuroevo_rollout_results(rollout, 1, 1, &none), NEUROEVO_OK);  // the time is over
  CHECK_EQ(none->count, 0);
  neuroevo_results_free(none);

  int ended = 1;
  CHECK_EQ(neuroevo_rollout_wait_for_end(rollout, 1, &ended), NEUROEVO_OK);
  CHECK_EQ(ended, 0);
  CHECK_EQ(neuroevo_rollout_close(rollout), NEUROEVO_OK);
  CHECK_EQ(neuroevo_rollout_wait_for_end(rollout, 60'000, &ended), NEUROEVO_OK);
  CHECK_EQ(ended, 1);
  CHECK_EQ(neuroevo_rollout_submit(rollout, &arrays.episodes, 0), NEUROEVO_CANCELLED);
  CHECK_EQ(std::string(neuroevo_last_error()), "the episode queue is closed");
}

TEST(WhatALaneFailsOfReachesEveryCall) {
  Arrays arrays;
  arrays.genome_networks[0] = 1;
  const Native native;
  neuroevo_rollout* rollout = nullptr;
  CHECK_EQ(neuroevo_rollout_start(native.envs, native.population, kLanes, kSlots, kParents, &rollout), NEUROEVO_OK);
  const std::unique_ptr<neuroevo_rollout, void (*)(neuroevo_rollout*)> owner(rollout, neuroevo_rollout_free);
  CHECK_EQ(neuroevo_rollout_submit(rollout, &arrays.episodes, 0), NEUROEVO_OK);
  const std::string expected = "network 1 is out of range [0, 1)";
  const neuroevo_results* results = nullptr;
  CHECK_EQ(neuroevo_rollout_results(rollout, 7, 60'000, &results), NEUROEVO_OUT_OF_RANGE);
  CHECK_EQ(std::string(neuroevo_last_error()), expected);
  CHECK_EQ(neuroevo_rollout_submit(rollout, &arrays.episodes, 0), NEUROEVO_OUT_OF_RANGE);
  CHECK_EQ(std::string(neuroevo_last_error()), expected);
  CHECK(results == nullptr);
}

TEST(EveryBadValueIsAnError) {
  constexpr int64_t kHuge = int64_t{1} << 40, kLeast = std::numeric_limits<int64_t>::min();
  const Native native;
  const auto check = [&](const std::function<void(Arrays*)>& spoil, const std::string& message,
                         int code = NEUROEVO_INVALID_ARGUMENT) {
    Arrays arrays;
    spoil(&arrays);
    const neuroevo_results* results = nullptr;
    CHECK_EQ(native.Run(arrays.episodes, &results), code);
    CHECK_EQ(std::string(neuroevo_last_error()), message);
    CHECK(results == nullptr);
  };
  for (int64_t bad : {int64_t{-1}, kHuge, kLeast, std::numeric_limits<int64_t>::max()}) {
    const std::string expected = " is " + std::to_string(bad) + ", expected 0 to 268435456";
    check([&](Arrays* a) { a->episodes.num_episodes = bad; }, "number of episodes" + expected);
    check([&](Arrays* a) { a->episodes.num_genomes = bad; }, "number of genomes" + expected);
    check([&](Arrays* a) { a->episodes.num_mutations = bad; }, "number of mutations" + expected);
    check([&](Arrays* a) { a->episodes.num_thetas = bad; }, "number of thetas" + expected);
  }
  for (int64_t bad : {int64_t{0}, int64_t{-9}, kHuge, kLeast}) {
    check([&](Arrays* a) { a->episodes.theta_size = bad; },
          "theta_size is " + std::to_string(bad) + ", expected 1 to 549755813888 for 2 thetas");
  }
  check([](Arrays* a) { a->episodes.theta_size = 8; }, "stride is 8, expected at least the network's D = 9");

  check([](Arrays* a) { a->chain_splits[0] = 1; }, "chain_splits begin at 1, expected 0");
  check([](Arrays* a) { a->chain_splits[0] = -4; }, "chain_splits begin at -4, expected 0");
  check([](Arrays* a) { a->chain_splits[2] = 1; }, "chain_splits of genome 1 are 2, 1, expected ascending in [0, 5]");
  check([](Arrays* a) { a->chain_splits[3] = 6; }, "chain_splits of genome 2 are 2, 6, expected ascending in [0, 5]");
  check([](Arrays* a) { a->chain_splits[1] = 1'000'000'000'000; },
        "chain_splits of genome 0 are 0, 1000000000000, expected ascending in [0, 5]");
  check([](Arrays* a) { a->chain_splits[4] = -7; }, "chain_splits of genome 3 are 5, -7, expected ascending in [0, 5]");
  check([](Arrays* a) { a->episodes.num_mutations = 4; },
        "chain_splits of genome 2 are 2, 5, expected ascending in [0, 4]");
  check(
      [](Arrays* a) {
        a->chain_splits = {0, 2, 2, 4, 4};
        a->episodes.chain_splits = a->chain_splits.data();
      },
      "chain_splits end at 4, expected the number of mutations: 5");

  check([](Arrays* a) { a->episode_genomes[6] = 4; }, "genome of an episode 4 is out of range [0, 4)",
        NEUROEVO_OUT_OF_RANGE);
  check([](Arrays* a) { a->episode_genomes[6] = -1; }, "genome of an episode -1 is out of range [0, 4)",
        NEUROEVO_OUT_OF_RANGE);
  check([](Arrays* a) { a->genome_thetas[0] = 2; }, "theta of a genome 2 is out of range [0, 2)",
        NEUROEVO_OUT_OF_RANGE);
  check([](Arrays* a) { a->genome_thetas[0] = -2; }, "theta of a genome -2 is out of range [0, 2)",
        NEUROEVO_OUT_OF_RANGE);
  check([](Arrays* a) { a->genome_thetas[1] = 0; }, "genome 1 has a theta and source row 1, expected one of them");
  check([](Arrays* a) { a->genome_sources[0] = 2; }, "source row 2 of genome 0 is out of range [-1, 2)",
        NEUROEVO_OUT_OF_RANGE);
  check([](Arrays* a) { a->genome_sources[0] = kLeast; },
        "source row -9223372036854775808 of genome 0 is out of range [-1, 2)", NEUROEVO_OUT_OF_RANGE);
  check([](Arrays* a) { a->chain_spreads[4] = 2; }, "spread row 2 of genome 2 is out of range [-1, 2)",
        NEUROEVO_OUT_OF_RANGE);
  check([](Arrays* a) { a->chain_spreads[0] = kLeast; },
        "spread row -9223372036854775808 of genome 0 is out of range [-1, 2)", NEUROEVO_OUT_OF_RANGE);
  check([](Arrays* a) { a->genome_networks[3] = -1; }, "network of genome 3 is -1, expected 0 or more");
  check([](Arrays* a) { a->genome_networks[3] = 1; }, "network 1 is out of range [0, 1)", NEUROEVO_OUT_OF_RANGE);
  check([](Arrays* a) { a->episode_max_frames[2] = -1; }, "max_frames of episode 2 is -1, expected 0 or more");
  check([](Arrays* a) { a->episode_normalizers[2] = -2; }, "normalizer of episode 2 is -2, expected -1 (none) or more");
  check([](Arrays* a) { a->episode_normalizers[2] = 4; }, "normalizer 4 is not set", NEUROEVO_NOT_FOUND);

  check([](Arrays* a) { a->episodes.episode_genomes = nullptr; }, "episode_genomes is null, expected 7 values");
  check([](Arrays* a) { a->episodes.episode_seeds = nullptr; }, "episode_seeds is null, expected 7 values");
  check([](Arrays* a) { a->episodes.episode_max_frames = nullptr; }, "episode_max_frames is null, expected 7 values");
  check([](Arrays* a) { a->episodes.genome_networks = nullptr; }, "genome_networks is null, expected 4 values");
  check([](Arrays* a) { a->episodes.genome_sources = nullptr; }, "genome_sources is null, expected 4 values");
  check([](Arrays* a) { a->episodes.genome_seeds = nullptr; }, "genome_seeds is null, expected 4 values");
  check([](Arrays* a) { a->episodes.chain_splits = nullptr; }, "chain_splits is null, expected 5 values");
  check([](Arrays* a) { a->episodes.chain_seeds = nullptr; }, "chain_seeds is null, expected 5 values");
  check([](Arrays* a) { a->episodes.chain_scales = nullptr; }, "chain_scales is null, expected 5 values");
  check([](Arrays* a) { a->episodes.thetas = nullptr; }, "thetas is null, expected 2 values");
}

TEST(BadLanesAndLengths) {
  const Arrays arrays;
  const Native native;
  const neuroevo_results* results = nullptr;
  const auto check = [](int code, const std::string& message, int expected = NEUROEVO_INVALID_ARGUMENT) {
    CHECK_EQ(std::string(neuroevo_last_error()), message);
    CHECK_EQ(code, expected);
  };
  check(native.Run(arrays.episodes, &results, 1, 3), "the env pool has 4 slots, expected 3");
  check(native.Run(arrays.episodes, &results, 0, 3), "number of lanes is 0, expected at least 1");
  check(native.Run(arrays.episodes, &results, int64_t{1} << 40, 3),
        "1099511627776 lanes of 3 slots, expected at most 65536 slots in all");
  const float outputs[3] = {};
  int32_t actions[1];
  check(neuroevo_env_actions(native.envs, outputs, -1, 3, actions), "number of networks is -1, expected 0 or more");
  check(neuroevo_env_actions(native.envs, outputs, 1, -3, actions),
        "the networks have -3 outputs, expected one per action: 3");
  const int64_t slots[] = {0};
  double rewards[1];
  uint8_t dones[1];
  check(neuroevo_env_step(native.envs, slots, -1, actions, rewards, dones), "a length is -1, expected 0 or more");
  check(neuroevo_env_step(native.envs, nullptr, 1, actions, rewards, dones), "an array is null, expected 1 values");
  neuroevo_env_pool* envs = nullptr;
  check(neuroevo_env_pool_make("tally", nullptr, -1, 1, &envs), "a length is -1, expected 0 or more");
  neuroevo_population* population = nullptr;
  check(neuroevo_population_make("cpu", nullptr, -2, 1, "float32", -1, &population),
        "a length is -2, expected 0 or more");
}
