// Episodes for the queue as arrays: the C interface, the TensorFlow op and Python share these arrays, their names and
// checks.
#ifndef NEUROEVO_ROLLOUT_SUBMISSION_H_
#define NEUROEVO_ROLLOUT_SUBMISSION_H_

#include <cstdint>
#include <vector>

#include "rollout/episode_queue.h"

namespace neuroevo {

// Submission of E episodes of G genomes with M mutations in total and V thetas. Points to the caller's arrays.
struct Submission {
  static constexpr int64_t kMaxCount = int64_t{1} << 28;    // limit of E, G, M and V, far more than fits in memory
  static constexpr int64_t kMaxWeights = int64_t{1} << 40;  // of all thetas together

  int64_t num_episodes = 0;                      // E
  const int64_t* episode_ids = nullptr;          // [E], 0 or more; null: 0, 1, ..., E - 1
  const int64_t* episode_genomes = nullptr;      // [E], index in [0, G)
  const uint64_t* episode_seeds = nullptr;       // [E]
  const int64_t* episode_max_frames = nullptr;   // [E], 0 or more
  const int64_t* episode_normalizers = nullptr;  // [E], numbers of normalizers in the env pool, or -1; null: all -1

  int64_t num_genomes = 0;                   // G
  const int64_t* genome_ids = nullptr;       // [G], 0 or more; null: 0, 1, ..., G - 1
  const int32_t* genome_networks = nullptr;  // [G], 0 or more
  const int64_t* genome_sources = nullptr;   // [G], a row of the population to start from, or -1
  const uint64_t* genome_seeds = nullptr;    // [G], seeds of the initial weights; unused with a source or theta
  const int64_t* genome_thetas = nullptr;    // [G], index in [0, V) of a theta to start from, or -1; null: all -1

  int64_t num_mutations = 0;               // M
  const int64_t* chain_splits = nullptr;   // [G + 1], 0 ... M: genome g has mutations [splits[g], splits[g + 1])
  const uint64_t* chain_seeds = nullptr;   // [M]
  const float* chain_scales = nullptr;     // [M]
  const int64_t* chain_spreads = nullptr;  // [M], a row of the population, or -1; null: all -1

  int64_t num_thetas = 0;         // V
  const float* thetas = nullptr;  // [V, theta_size]
  int64_t theta_size = 0;         // at least D of each network that starts from a theta
};

// Build the queue's episodes, copying all data. Throws for a count, index or split out of range and for a missing
// array; the queue and the population perform the remaining checks.
std::vector<QueuedEpisode> BuildEpisodes(const Submission& submission);

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_SUBMISSION_H_
