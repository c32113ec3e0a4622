#include "c_api/rollout.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "rollout/lane_runner.h"
#include "rollout/submission.h"

struct neuroevo_rollout {
  neuroevo_rollout(neuroevo_env_pool* pool, neuroevo_population* population, int64_t lanes, int64_t slots_per_lane,
                   int64_t first_row)
      : queue(lanes, slots_per_lane, first_row),
        runner(&neuroevo::Object(pool), &neuroevo::Object(population), &queue) {}

  neuroevo::EpisodeQueue queue;
  neuroevo::LaneRunner runner;
  std::vector<neuroevo::EpisodeResult> ended;  // that a call took from the queue and found no memory to give out
};

namespace neuroevo {
namespace {

constexpr int64_t kLongestWait = 60'000;  // milliseconds, far from where a clock's numbers end

std::chrono::milliseconds Milliseconds(int64_t count) {
  return std::chrono::milliseconds(std::clamp<int64_t>(count, 0, kLongestWait));
}

// Results, and the arrays that they point to.
class OwnedResults : public neuroevo_results {
 public:
  // Takes the results, or throws and leaves them.
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
    for (EpisodeResult& result : all_) std::vector<uint8_t>().swap(result.end.behavior);  // it may be megabytes
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
  std::vector<EpisodeResult> all_;  // whose failures are pointed to
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

extern "C" {

int neuroevo_rollout_start(neuroevo_env_pool* pool, neuroevo_population* population, int64_t lanes,
                           int64_t slots_per_lane, int64_t first_row, neuroevo_rollout** rollout) {
  return neuroevo::Guard([&] { *rollout = new neuroevo_rollout(pool, population, lanes, slots_per_lane, first_row); });
}

int neuroevo_rollout_submit(neuroevo_rollout* rollout, const neuroevo_episodes* episodes, int64_t priority) {
  return neuroevo::Guard([&] {
    neuroevo::CheckArray("episodes", episodes, 1);
    neuroevo_rollout& given = neuroevo::Given(rollout, "rollout");
    given.runner.RethrowFailure();
    try {
      given.queue.Submit(neuroevo::BuildEpisodes(neuroevo::SubmissionOf(*episodes)), priority);
    } catch (...) {  // of a lane that fails meanwhile the reason is of use, and not that it has closed the queue
      given.runner.RethrowFailure();
      throw;
    }
  });
}

int neuroevo_rollout_results(neuroevo_rollout* rollout, int64_t count, int64_t milliseconds,
                             const neuroevo_results** results) {
  return neuroevo::Guard([&] {
    neuroevo_rollout& given = neuroevo::Given(rollout, "rollout");
    std::vector<neuroevo::EpisodeResult>& ended = given.ended;
    if (ended.empty()) ended = given.queue.Results(count, neuroevo::Milliseconds(milliseconds));
    given.runner.RethrowFailure();
    *results = new neuroevo::OwnedResults(&ended, given.queue.TotalSteps());
  });
}

void neuroevo_results_free(const neuroevo_results* results) {
  delete static_cast<const neuroevo::OwnedResults*>(results);
}

int neuroevo_rollout_close(neuroevo_rollout* rollout) {
  return neuroevo::Guard([&] { neuroevo::Given(rollout, "rollout").queue.Close(); });
}

int neuroevo_rollout_wait_for_end(neuroevo_rollout* rollout, int64_t milliseconds, int* ended) {
  return neuroevo::Guard([&] {
    *ended = neuroevo::Given(rollout, "rollout").runner.WaitForEnd(neuroevo::Milliseconds(milliseconds)) ? 1 : 0;
  });
}

void neuroevo_rollout_free(neuroevo_rollout* rollout) { delete rollout; }

}  // extern "C"
