// Genomes and episodes for tests of the episode queue. Rows are tracked symbolically: a row's "weights" are the recipe
// that the refills have applied to it.
#ifndef NEUROEVO_TESTS_NATIVE_ROLLOUT_SYMBOLIC_ROWS_H_
#define NEUROEVO_TESTS_NATIVE_ROLLOUT_SYMBOLIC_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "native/check.h"
#include "rollout/episode_queue.h"

namespace neuroevo {

using Ints = std::vector<int64_t>;
using Genome = std::shared_ptr<const GenomeRecipe>;

inline Genome MakeGenome(int64_t id, std::vector<ChainLink> chain = {}, int64_t source_row = -1,
                         Theta theta = nullptr) {
  auto genome = std::make_shared<GenomeRecipe>();
  genome->id = id;
  genome->source_row = source_row;
  genome->network = static_cast<int32_t>(id % 2);
  genome->seed = 1000 + id;
  genome->chain = std::move(chain);
  genome->theta = std::move(theta);
  return genome;
}

inline Theta MakeTheta(float value) { return std::make_shared<const std::vector<float>>(2, value); }

inline QueuedEpisode Episode(int64_t id, Genome genome) {
  return {id, 500 + static_cast<uint64_t>(id), 10 * id, genome};
}

// Take that must not wait.
inline Refill TakeNow(EpisodeQueue* queue, int64_t lane) {
  std::optional<Refill> taken;
  queue->Take(lane, [&](Refill refill) { taken = std::move(refill); });
  CHECK(taken.has_value());
  return *taken;
}

// Record a step in which every slot gets reward 1.
inline EpisodeQueue::PutResult PutOnes(EpisodeQueue* queue, int64_t lane, const Ints& slots,
                                       const std::set<int64_t>& done) {
  const std::vector<double> rewards(slots.size(), 1);
  auto dones = std::make_unique<bool[]>(slots.size());
  for (size_t k = 0; k < slots.size(); ++k) dones[k] = done.count(slots[k]) > 0;
  const auto ended = std::count(dones.get(), dones.get() + slots.size(), true);
  return queue->Put(lane, slots, rewards.data(), dones.get(), std::vector<EpisodeEnd>(ended));
}

// Content of an assigned row.
inline std::string Text(int32_t network, const Theta& theta) {
  return "theta " + std::to_string(network) + " " + std::to_string(theta->at(1));
}

// One mutation.
inline std::string Text(uint64_t seed, float scale, int64_t spread) {
  return " " + std::to_string(seed) + "*" + std::to_string(scale) + "*row " + std::to_string(spread);
}

// Content of a row: a source row, or network and theta or seed, and the mutations since.
inline std::string Text(const GenomeRecipe& genome) {
  std::string text = genome.theta ? Text(genome.network, genome.theta)
                     : genome.source_row >= 0
                         ? "row " + std::to_string(genome.source_row)
                         : "init " + std::to_string(genome.network) + " " + std::to_string(genome.seed);
  for (const auto& [seed, scale, spread] : genome.chain) text += Text(seed, scale, spread);
  return text;
}

// Symbolic executor of refills.
class Rows {
 public:
  explicit Rows(int64_t first_row) {
    for (int64_t r = 0; r < first_row; ++r) rows_[r] = "row " + std::to_string(r);
  }
  void Fill(const Refill& refill) {
    for (size_t i = 0; i < refill.assign_rows.size(); ++i) {
      rows_[refill.assign_rows[i]] = Text(refill.assign_networks.at(i), refill.assign_thetas.at(i));
    }
    for (size_t i = 0; i < refill.init_rows.size(); ++i) {
      rows_[refill.init_rows[i]] =
          "init " + std::to_string(refill.init_networks.at(i)) + " " + std::to_string(refill.init_seeds.at(i));
    }
    for (size_t i = 0; i < refill.perturb_dst.size(); ++i) {
      rows_[refill.perturb_dst[i]] =
          rows_.at(refill.perturb_src.at(i)) +
          Text(refill.perturb_seeds.at(i), refill.perturb_scales.at(i), refill.perturb_spreads.at(i));
    }
  }
  const std::string& At(int64_t row) const { return rows_.at(row); }

 private:
  std::map<int64_t, std::string> rows_;
};

// Rows that a refill writes.
inline std::set<int64_t> Written(const Refill& refill) {
  std::set<int64_t> rows(refill.init_rows.begin(), refill.init_rows.end());
  rows.insert(refill.assign_rows.begin(), refill.assign_rows.end());
  rows.insert(refill.perturb_dst.begin(), refill.perturb_dst.end());
  return rows;
}

}  // namespace neuroevo

#endif  // NEUROEVO_TESTS_NATIVE_ROLLOUT_SYMBOLIC_ROWS_H_
