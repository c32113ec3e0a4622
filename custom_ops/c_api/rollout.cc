#include "c_api/rollout.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "rollout/lane_runner.h"
#include "rollout/submission.h"

namespace neuroevo {
namespace {

using Results = std::list<std::vector<EpisodeResult>>;  // one entry per call; splicing lists allocates nothing

struct Rollout {
  Rollout(std::shared_ptr<EnvPool> env_pool, std::shared_ptr<Population> networks, int64_t lanes,
          int64_t slots_per_lane, int64_t first_row)
      : pool(std::move(env_pool)),
        population(std::move(networks)),
        queue(lanes, slots_per_lane, first_row),
        runner(pool.get(), population.get(), &queue) {}

  // Return the undelivered results of one failed call; empty if no call has failed.
  Results TakeKept() {
    Results taken;
    const std::lock_guard<std::mutex> lock(mutex);
    if (!kept.empty()) taken.splice(taken.begin(), kept, kept.begin());
    return taken;
  }
  void Keep(Results* taken) {
    const std::lock_guard<std::mutex> lock(mutex);
    kept.splice(kept.end(), *taken);
  }

  const std::shared_ptr<EnvPool> pool;
  const std::shared_ptr<Population> population;
  EpisodeQueue queue;
  LaneRunner runner;
  std::mutex mutex;
  Results kept;  // results taken from the queue by a call that failed to return them; guarded by the mutex
};

auto& rollouts = *new Handles<neuroevo_rollout, Rollout>("rollout");

constexpr int64_t kLongestWait = 60'000;  // milliseconds; longer waits could overflow the clock's time points

std::chrono::milliseconds Milliseconds(int64_t count) {
  return std::chrono::milliseconds(std::clamp<int64_t>(count, 0, kLongestWait));
}

// Results that own the arrays to which they point.
class OwnedResults : public neuroevo_results {
 public:
  // Move the results in; on an exception they are unchanged.
  OwnedResults(std::vector<EpisodeResult>* all, int64_t steps_so_far) : neuroevo_results() {
    total_steps = steps_so_far;
    count = static_cast<int64_t>(all->size());
    observation_sums_size = WidthOf(*all, &EpisodeEnd::observation_sums);
    behavior_bytes = WidthOf(*all, &EpisodeEnd::behavior);
    sums_.resize(count * observation_sums_size);
    behaviors_.resize(count * behavior_bytes);
    CopyRows(*all, &EpisodeEnd::observation_sums, sums_.data());
    CopyRows(*all, &EpisodeEnd::behavior, behaviors_.data());
    for (const EpisodeResult& result : *all) {
      ids_.push_back(result.id);
      returns_.push_back(result.total_reward);
      steps_.push_back(result.steps);
      retries_.push_back(result.end.retries);
      failures_.push_back(result.end.failure.c_str());
    }
    all_.swap(*all);
    for (EpisodeResult& result : all_) std::vector<uint8_t>().swap(result.end.behavior);  // up to megabytes each
    ids = ids_.data();
    returns = returns_.data();
    steps = steps_.data();
    failures = failures_.data();
    retries = retries_.data();
    observation_sums = sums_.data();
    behaviors = behaviors_.data();
  }
  OwnedResults(const OwnedResults&) = delete;
  OwnedResults& operator=(const OwnedResults&) = delete;

 private:
  std::vector<EpisodeResult> all_;  // owns the failure strings
  std::vector<double> returns_, sums_;
  std::vector<int64_t> ids_, steps_, retries_;
  std::vector<const char*> failures_;
  std::vector<uint8_t> behaviors_;
};

Submission SubmissionOf(const neuroevo_episodes& in) {
  Submission out;
  out.num_episodes = in.num_episodes;
  out.episode_ids = in.episode_ids;
  out.episode_genomes = in.episode_genomes;
  out.episode_seeds = in.episode_seeds;
  out.episode_max_frames = in.episode_max_frames;
  out.episode_normalizers = in.episode_normalizers;
  out.num_genomes = in.num_genomes;
  out.genome_ids = in.genome_ids;
  out.genome_networks = in.genome_networks;
  out.genome_sources = in.genome_sources;
  out.genome_seeds = in.genome_seeds;
  out.genome_thetas = in.genome_thetas;
  out.num_mutations = in.num_mutations;
  out.chain_splits = in.chain_splits;
  out.chain_seeds = in.chain_seeds;
  out.chain_scales = in.chain_scales;
  out.chain_spreads = in.chain_spreads;
  out.num_thetas = in.num_thetas;
  out.thetas = in.thetas;
  out.theta_size = in.theta_size;
  return out;
}

}  // namespace
}  // namespace neuroevo

using neuroevo::Guard;
using neuroevo::Object;
using neuroevo::Rollout;
using neuroevo::rollouts;

extern "C" {

int neuroevo_rollout_start(neuroevo_env_pool* pool, neuroevo_population* population, int64_t lanes,
                           int64_t slots_per_lane, int64_t first_row, neuroevo_rollout** rollout) {
  return Guard([&] {
    *rollout =
        rollouts.Add(std::make_shared<Rollout>(Object(pool), Object(population), lanes, slots_per_lane, first_row));
  });
}

int neuroevo_rollout_submit(neuroevo_rollout* rollout, const neuroevo_episodes* episodes, int64_t priority) {
  return Guard([&] {
    neuroevo::CheckArray("episodes", episodes, 1);
    const auto given = rollouts.Get(rollout);
    given->runner.RethrowFailure();
    try {
      given->queue.Submit(neuroevo::BuildEpisodes(neuroevo::SubmissionOf(*episodes)), priority);
    } catch (...) {  // if a lane fails meanwhile, report its exception rather than that the queue is closed
      given->runner.RethrowFailure();
      throw;
    }
  });
}

int neuroevo_rollout_results(neuroevo_rollout* rollout, int64_t count, int64_t milliseconds,
                             const neuroevo_results** results) {
  return Guard([&] {
    const auto given = rollouts.Get(rollout);
    neuroevo::Results taken = given->TakeKept();
    if (taken.empty()) taken.push_back({});
    std::vector<neuroevo::EpisodeResult>& ended = taken.front();
    try {
      if (ended.empty()) ended = given->queue.Results(count, neuroevo::Milliseconds(milliseconds));
      given->runner.RethrowFailure();
      *results = new neuroevo::OwnedResults(&ended, given->queue.TotalSteps());
    } catch (...) {
      if (!ended.empty()) given->Keep(&taken);
      throw;
    }
  });
}

void neuroevo_results_free(const neuroevo_results* results) {
  delete static_cast<const neuroevo::OwnedResults*>(results);
}

int neuroevo_rollout_close(neuroevo_rollout* rollout) {
  return Guard([&] {
    if (const auto given = rollouts.Find(rollout)) given->queue.Close();
  });
}

int neuroevo_rollout_wait_for_end(neuroevo_rollout* rollout, int64_t milliseconds, int* ended) {
  return Guard([&] {
    const auto given = rollouts.Find(rollout);
    *ended = given == nullptr || given->runner.WaitForEnd(neuroevo::Milliseconds(milliseconds)) ? 1 : 0;
  });
}

void neuroevo_rollout_free(neuroevo_rollout* rollout) {
  if (const auto given = rollouts.Take(rollout)) given->queue.Close();  // calls that wait for results return
}

}  // extern "C"
