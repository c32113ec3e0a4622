// Every allocation fails in turn, in any thread, while episodes are played: by calls of a pool, by lanes, and by
// Gymnasium's interface. The call that needed the memory, or that waits for a lane which did, reports it; nothing
// crashes or hangs, no episode is lost or played twice, and the outcomes equal those of a run without failures.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "c_api/neuroevo.h"
#include "c_api/rollout.h"
#include "c_api/vector_env.h"
#include "native/c_api/faults.h"
#include "native/envs/toys.h"

using namespace neuroevo;

namespace {

const char kNetwork[] = "input float32 3; dense 8 1.0; bias; tanh; dense 3 1.0; bias";

// A pool of toys whose behavior is recorded and whose observations may be normalized.
void MakeToys(PoolHandle* pool, int64_t slots) {
  const std::vector<const char*> options = {"show=true", "length=6", "num_actions=3"};
  Do([&] { return neuroevo_env_pool_make("toy", options.data(), 3, slots, pool->place()); });
  Do([&] { return neuroevo_env_record_behaviors(*pool, 2, 3); });
  const std::vector<double> mean = {1, 2, 3}, std = {2, 2, 4};
  Do([&] { return neuroevo_env_set_normalizer(*pool, 5, mean.data(), std.data(), 3); });
}

// Play episodes of a pool, restarting them if a step fails; return all resulting numbers.
std::vector<double> UsePool() {
  constexpr int64_t kSlots = 3;
  NewThreads();
  PoolHandle pool;
  MakeToys(&pool, kSlots);
  neuroevo_env_spec spec;
  Do([&] { return neuroevo_env_pool_spec(pool, &spec); });
  const Int64s slots = {2, 0, 1}, max_frames = {0, 6, 8}, normalizers = {5, -1, 5};
  const std::vector<uint64_t> seeds = {1, 2, 3};
  std::vector<double> found;
  for (bool whole = false; !whole;) {
    found.clear();
    Do([&] {
      return neuroevo_env_reset(pool, slots.data(), kSlots, seeds.data(), max_frames.data(), normalizers.data());
    });
    whole = true;
    for (int step = 0; step < 3 && whole; ++step) {
      std::vector<float> seen(3 * kSlots), outputs = {1, 2, 0, 0, 5, 4, 3, 0, 0};
      whole = Succeeds([&] { return neuroevo_env_observe_normalized(pool, slots.data(), kSlots, seen.data()); });
      if (!whole) break;  // the sums count every observation
      found.insert(found.end(), seen.begin(), seen.end());
      Do([&] { return neuroevo_env_observe(pool, slots.data(), kSlots, seen.data()); });
      found.insert(found.end(), seen.begin(), seen.end());
      std::vector<int32_t> actions(kSlots);
      Do([&] { return neuroevo_env_actions(pool, outputs.data(), kSlots, 3, actions.data()); });
      std::vector<double> rewards(kSlots);
      std::vector<uint8_t> dones(kSlots);
      whole = Succeeds(
          [&] { return neuroevo_env_step(pool, slots.data(), kSlots, actions.data(), rewards.data(), dones.data()); });
      found.insert(found.end(), rewards.begin(), rewards.end());
      found.insert(found.end(), dones.begin(), dones.end());
    }
  }
  std::vector<double> behaviors(2 * kSlots), states(3 * kSlots);
  std::vector<uint8_t> screens(6 * kSlots);
  Do([&] { return neuroevo_env_behavior(pool, slots.data(), kSlots, behaviors.data()); });
  Do([&] { return neuroevo_env_state(pool, slots.data(), kSlots, states.data()); });
  Do([&] { return neuroevo_env_render(pool, slots.data(), kSlots, screens.data()); });
  const char* failure = nullptr;
  Do([&] { return neuroevo_env_failure(pool, 1, &failure); });
  for (const auto& numbers : {behaviors, states}) found.insert(found.end(), numbers.begin(), numbers.end());
  found.insert(found.end(), screens.begin(), screens.end());
  found.push_back(static_cast<double>(std::strlen(failure)));
  const int64_t number = 5;
  Do([&] { return neuroevo_env_drop_normalizers(pool, &number, 1); });
  return found;
}

// An error is reported with its complete message, or as out of memory.
std::vector<std::pair<int, std::string>> MakeMistakes() {
  std::vector<std::pair<int, std::string>> told;
  PoolHandle pool;
  MakeToys(&pool, 2);
  const int64_t slot = 9;
  double state[3];
  const char *option = "length=0", *network = "input float32 3; dense x 1.0";
  PoolHandle none;
  PopulationHandle rows;
  const auto mistake = [&](auto call) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      const int code = allocations::Counted(call);
      const std::string words = neuroevo_last_error();
      CHECK(code != NEUROEVO_OK && !words.empty());
      if (words == "out of memory") {
        CHECK(attempt == 0);
        continue;
      }
      told.emplace_back(code, words);
      return;
    }
  };
  mistake([&] { return neuroevo_env_state(pool, &slot, 1, state); });
  mistake([&] { return neuroevo_env_pool_make("toy", &option, 1, 1, none.place()); });
  mistake([&] { return neuroevo_env_pool_make("no such family", nullptr, 0, 1, none.place()); });
  mistake([&] { return neuroevo_population_make("cpu", &network, 1, 1, "float32", -1, rows.place()); });
  return told;
}

// Outcome of an episode: its return, steps, failure, sums and behavior.
using Outcome = std::tuple<double, int64_t, std::string, std::vector<double>, std::vector<uint8_t>>;

struct Played {
  std::map<int64_t, Outcome> outcomes;
  bool operator!=(const Played& other) const { return outcomes != other.outcomes; }
};

// Episodes of a rollout. A lane's failure ends the rollout, and then another rollout plays all episodes.
class Lanes {
 public:
  static constexpr int64_t kLanes = 2, kSlotsPerLane = 2, kEpisodes = 11, kFirstRow = 2;

  Lanes() {
    NewThreads();
    MakeToys(&pool_, kLanes * kSlotsPerLane);
    const char* network = kNetwork;
    const int64_t rows = kFirstRow + kLanes * kSlotsPerLane, parent = 1;
    const int32_t first = 0;
    const uint64_t seed = 5;
    Do([&] { return neuroevo_population_make("cpu", &network, 1, rows, "float32", -1, rows_.place()); });
    Do([&] { return neuroevo_population_dimension(rows_, 0, &dimension_); });
    Do([&] { return neuroevo_population_init(rows_, &parent, 1, &first, &seed); });
    theta_.assign(dimension_, 0.125f);
    for (int64_t e = 0; e < kEpisodes; ++e) {
      genomes_.push_back(e % 4);
      seeds_.push_back(20 + 2 * e);  // odd ones fail
      max_frames_.push_back(2 + e % 5);
      normalizers_.push_back(e % 3 == 0 ? 5 : -1);
    }
    seeds_[4] = 29;
  }

  Played Play() {
    for (;;) {
      RolloutHandle rollout;
      Do([&] { return neuroevo_rollout_start(pool_, rows_, kLanes, kSlotsPerLane, kFirstRow, rollout.place()); });
      Played played;
      if (Submitted(rollout) && Collected(rollout, &played)) {
        int ended = 0;
        Do([&] { return neuroevo_rollout_close(rollout); });
        Do([&] { return neuroevo_rollout_wait_for_end(rollout, kTime, &ended); });
        CHECK_EQ(ended, 1);
        return played;
      }
    }
  }

 private:
  // Return false if a lane has failed. A submission that fails for another reason has no effect.
  bool Submitted(neuroevo_rollout* rollout) {
    neuroevo_episodes episodes = {};
    episodes.num_episodes = kEpisodes;
    episodes.episode_genomes = genomes_.data();
    episodes.episode_seeds = seeds_.data();
    episodes.episode_max_frames = max_frames_.data();
    episodes.episode_normalizers = normalizers_.data();
    episodes.num_genomes = 4;
    episodes.genome_networks = networks_.data();
    episodes.genome_sources = sources_.data();
    episodes.genome_seeds = genome_seeds_.data();
    episodes.genome_thetas = thetas_.data();
    episodes.num_mutations = 3;
    episodes.chain_splits = splits_.data();
    episodes.chain_seeds = genome_seeds_.data();
    episodes.chain_scales = scales_.data();
    episodes.chain_spreads = spreads_.data();
    episodes.num_thetas = 1;
    episodes.thetas = theta_.data();
    episodes.theta_size = dimension_;
    const auto submit = [&] { return neuroevo_rollout_submit(rollout, &episodes, 1); };
    return Succeeds(submit) || Succeeds(submit);
  }

  // Return false if a lane has failed. Results that a failed call could not return are returned by the next call.
  bool Collected(neuroevo_rollout* rollout, Played* played) {
    for (int failures = 0; static_cast<int64_t>(played->outcomes.size()) < kEpisodes;) {
      const neuroevo_results* results = nullptr;
      const int64_t missing = kEpisodes - static_cast<int64_t>(played->outcomes.size());
      if (!Succeeds([&] { return neuroevo_rollout_results(rollout, missing, kTime, &results); })) {
        if (++failures == 2) return false;
        continue;
      }
      CHECK(results->count > 0);  // the others have been lost
      for (int64_t e = 0; e < results->count; ++e) {
        const double* sums = results->observation_sums + e * results->observation_sums_size;
        const uint8_t* behavior = results->behaviors + e * results->behavior_bytes;
        std::vector<double> own(sums, sums + results->observation_sums_size);
        if (std::all_of(own.begin(), own.end(), [](double sum) { return sum == 0; })) own.clear();
        Outcome outcome(results->returns[e], results->steps[e], results->failures[e], own,
                        {behavior, behavior + results->behavior_bytes});
        CHECK(played->outcomes.emplace(results->ids[e], outcome).second);  // once
      }
      allocations::Counted([&] { neuroevo_results_free(results); });
    }
    return true;
  }

  PoolHandle pool_;
  PopulationHandle rows_;
  int64_t dimension_ = 0;
  std::vector<float> theta_;
  Int64s genomes_, max_frames_, normalizers_;
  std::vector<uint64_t> seeds_;
  // Initial weights, a parent, a parent with mutations, and given weights with one.
  const std::vector<int32_t> networks_ = {0, 0, 0, 0};
  const Int64s sources_ = {-1, 1, 1, -1}, thetas_ = {-1, -1, -1, 0}, splits_ = {0, 0, 0, 2, 3}, spreads_ = {-1, 1, 1};
  const std::vector<uint64_t> genome_seeds_ = {31, 32, 33, 34};
  const std::vector<float> scales_ = {0.5f, 0.25f, 0.5f};
};

Played UseLanes() { return Lanes().Play(); }

Played UseTracedLanes() {
  Do([] { return neuroevo_trace_start(64); });
  const Played played = Lanes().Play();
  std::vector<neuroevo_span> spans(1000);
  int64_t count = 0, dropped = 0;
  Do([&] { return neuroevo_trace_read(spans.data(), 1000, &count, &dropped); });
  neuroevo_trace_stop();
  CHECK(count > 0);
  return played;
}

std::vector<double> UseVectorEnv() {
  constexpr int64_t kEnvs = 3;
  std::vector<double> found;
  for (const char* autoreset : {"NextStep", "SameStep"}) {
    VectorEnvHandle env;
    const char* option = "length=3";
    Do([&] { return neuroevo_vector_make("toy", &option, 1, kEnvs, autoreset, 0, 2, env.place()); });
    neuroevo_vector_spec spec;
    Do([&] { return neuroevo_vector_get_spec(env, &spec); });
    std::vector<float> observations(3 * kEnvs), finals(3 * kEnvs);
    std::vector<double> rewards(kEnvs);
    std::vector<uint8_t> terminations(kEnvs), truncations(kEnvs), failures(kEnvs), all(kEnvs, 1);
    const neuroevo_vector_output output = {observations.data(), rewards.data(), terminations.data(), truncations.data(),
                                           failures.data(),     nullptr,        finals.data(),       nullptr};
    const std::vector<uint64_t> seeds = {2, 4, 6};
    const Int64s actions = {0, 1, 2};
    std::vector<double> own;
    for (bool whole = false; !whole;) {
      own.clear();
      Do([&] { return neuroevo_vector_reset(env, all.data(), all.data(), seeds.data(), &output); });
      whole = true;
      for (int step = 0; step < 5 && whole; ++step) {
        whole = Succeeds([&] { return neuroevo_vector_step(env, actions.data(), &output); });
        own.insert(own.end(), observations.begin(), observations.end());
        own.insert(own.end(), rewards.begin(), rewards.end());
        own.insert(own.end(), truncations.begin(), truncations.end());
      }
    }
    const char* failure = nullptr;
    Do([&] { return neuroevo_vector_failure(env, 1, &failure); });
    found.insert(found.end(), own.begin(), own.end());
  }
  return found;
}

}  // namespace

TEST(Episodes) { allocations::FailEach(UsePool); }
TEST(Mistakes) { allocations::FailEach(MakeMistakes); }
TEST(RolloutOfLanes) { allocations::FailEach(UseLanes); }
TEST(RolloutWithATrace) { allocations::FailEach(UseTracedLanes); }
TEST(VectorOfEnvironments) { allocations::FailEach(UseVectorEnv); }
