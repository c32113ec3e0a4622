// Calls of the C interface about rollouts.
#ifndef NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_ROLLOUT_CALLS_H_
#define NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_ROLLOUT_CALLS_H_

#include <cstring>
#include <vector>

#include "c_api/rollout.h"
#include "fuzz/native/c_interface/arguments.h"
#include "fuzz/native/c_interface/env_calls.h"
#include "fuzz/native/c_interface/population_calls.h"

namespace neuroevo::fuzz {

class Rollout {
 public:
  ~Rollout() { Free(); }
  bool playing() const { return handle_ != nullptr; }
  void Free() {
    neuroevo_rollout_free(handle_);
    handle_ = nullptr;
  }

  void Start(const Pool& pool, const Rows& rows, Arguments* in) {
    Free();
    const bool odd = in->Chance(10);
    const int64_t lanes = odd ? in->Index(4) : 1 + in->Below(2);
    const int64_t slots = odd ? in->Index(4) : pool.slots() / lanes;
    networks_ = rows.networks();
    dimension_ = rows.dimension();
    first_row_ = odd ? in->Index(4) : std::max<int64_t>(0, rows.rows() - pool.slots());
    Succeeded(neuroevo_rollout_start(pool.handle(), rows.handle(), lanes, slots, first_row_, &handle_));
  }

  void Call(int64_t what, Arguments* in) {
    switch (what) {
      case kSubmit:
        Submit(in);
        break;
      case kResults: {
        const neuroevo_results* results = nullptr;
        const int64_t count = in->Index(4), milliseconds = Milliseconds(in);
        if (Succeeded(neuroevo_rollout_results(handle_, count, milliseconds, &results))) Look(*results);
        neuroevo_results_free(results);
        break;
      }
      case 2:
        Succeeded(neuroevo_rollout_close(handle_));
        break;
      default: {
        int ended = 0;
        Succeeded(neuroevo_rollout_wait_for_end(handle_, Milliseconds(in), &ended));
        break;
      }
    }
  }
  static constexpr int64_t kSubmit = 0, kResults = 1, kCalls = 4;

 private:
  static int64_t Milliseconds(Arguments* in) { return in->Chance(10) ? -(in->Index(3) % 8) : in->Below(8); }

  void Submit(Arguments* in) {
    const int64_t episodes = in->Length(), genomes = in->Length(), mutations = in->Length(), thetas = in->Below(3);
    const int64_t size = in->Chance(80) ? dimension_ : in->Below(5) - 1;
    const auto episode_ids = in->Indices(episodes, 50), episode_genomes = in->Indices(episodes, genomes);
    const auto episode_seeds = in->Seeds(episodes), genome_seeds = in->Seeds(genomes);
    const auto frames = in->Indices(episodes, 7), normalizers = in->Indices(episodes, 2);
    const auto genome_ids = in->Indices(genomes, 50), genome_thetas = in->Indices(genomes, thetas);
    const auto networks = in->Networks(genomes, networks_);
    std::vector<int64_t> sources(genomes, -1), splits(genomes + 1, mutations);
    for (int64_t& source : sources) source = in->Chance(40) ? in->Index(first_row_) : -1;
    splits[0] = 0;
    for (int64_t g = 1; g < genomes; ++g) splits[g] = std::min(splits[g - 1] + in->Below(3), mutations);
    if (in->Chance(10)) splits[in->Below(genomes + 1)] = in->Index(mutations + 1);
    const Array<int64_t> genome_sources(sources, in->Missing()), chain_splits(splits, in->Missing());
    const auto chain_seeds = in->Seeds(mutations);
    const auto scales = in->Floats(mutations);
    const bool spread = in->Chance(30);
    std::vector<int64_t> spreads(spread ? mutations : 0);
    for (int64_t& row : spreads) row = in->Chance(50) ? in->Index(first_row_) : -1;
    const auto weights = in->EqualFloats(thetas * std::max<int64_t>(size, 0));

    neuroevo_episodes all = {};
    all.num_episodes = Count(episodes, in);
    all.episode_ids = in->Chance(50) ? episode_ids.get() : nullptr;
    all.episode_genomes = episode_genomes.get();
    all.episode_seeds = episode_seeds.get();
    all.episode_max_frames = frames.get();
    all.episode_normalizers = in->Chance(30) ? normalizers.get() : nullptr;
    all.num_genomes = Count(genomes, in);
    all.genome_ids = in->Chance(50) ? genome_ids.get() : nullptr;
    all.genome_networks = networks.get();
    all.genome_sources = genome_sources.get();
    all.genome_seeds = genome_seeds.get();
    all.genome_thetas = in->Chance(30) ? genome_thetas.get() : nullptr;
    all.num_mutations = Count(mutations, in);
    all.chain_splits = chain_splits.get();
    all.chain_seeds = chain_seeds.get();
    all.chain_scales = scales.get();
    all.chain_spreads = spread ? spreads.data() : nullptr;
    all.num_thetas = Count(thetas, in);
    all.thetas = weights.get();
    all.theta_size = in->Chance(5) ? int64_t{1} << 42 : size;
    Succeeded(neuroevo_rollout_submit(handle_, &all, in->Index(3)));
  }

  // The true one, or one that no array has.
  static int64_t Count(int64_t count, Arguments* in) {
    return in->Chance(2) ? -1 : in->Chance(2) ? (int64_t{1} << 28) + 1 + in->Below(2) : count;
  }

  // All of it is there to be read.
  static void Look(const neuroevo_results& results) {
    Require(results.count >= 0 && results.total_steps >= 0, results.count, " results, ", results.total_steps, " steps");
    double sum = 0;
    for (int64_t e = 0; e < results.count; ++e) {
      sum += results.returns[e] + static_cast<double>(std::strlen(results.failures[e]));
      Require(results.ids[e] >= 0 && results.steps[e] >= 1 && results.retries[e] == 0, "result ", e, " is of episode ",
              results.ids[e], " after ", results.steps[e], " steps and ", results.retries[e], " retries");
    }
    for (int64_t i = 0; i < results.count * results.observation_sums_size; ++i) sum += results.observation_sums[i];
    for (int64_t i = 0; i < results.count * results.behavior_bytes; ++i) sum += results.behaviors[i];
    Require(sum == sum, "the sum of the results is not a number");
  }

  neuroevo_rollout* handle_ = nullptr;
  int64_t networks_ = 0, dimension_ = 0, first_row_ = 0;
};

}  // namespace neuroevo::fuzz

#endif  // NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_ROLLOUT_CALLS_H_
