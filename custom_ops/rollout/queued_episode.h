// Episodes to play, as they are submitted to the episode queue.
#ifndef NEUROEVO_ROLLOUT_QUEUED_EPISODE_H_
#define NEUROEVO_ROLLOUT_QUEUED_EPISODE_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace neuroevo {

using Theta = std::shared_ptr<const std::vector<float>>;  // at least D weights of a network; shared among genomes

// Mutation, with the arguments of Population::Perturb. spread: one of the caller's rows, or -1.
struct ChainLink {
  uint64_t seed;
  float scale;
  int64_t spread = -1;
};

// Recipe for a genome's weights: theta if set, the weights of source_row if it is not negative, otherwise init(seed) of
// the network; then the mutations of the chain. With a source_row and an empty chain, source_row itself is played.
struct GenomeRecipe {
  int64_t id;  // equal ids mean equal weights for the lifetime of the queue
  int64_t source_row = -1;
  int32_t network = 0;
  uint64_t seed = 0;
  std::vector<ChainLink> chain;
  Theta theta = nullptr;  // requires source_row = -1
};

struct QueuedEpisode {
  int64_t id;
  uint64_t seed;
  int64_t max_frames;
  std::shared_ptr<const GenomeRecipe> genome;
  int64_t normalizer = -1;  // number of a normalizer in the env pool; -1: no normalizer
  bool whole = false;       // whether it follows only episodes that are truncated in the same step: shared_plays.h
};

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_QUEUED_EPISODE_H_
