#include "rollout/submission.h"

#include <memory>
#include <utility>

#include "core/error.h"

namespace neuroevo {
namespace {

void CheckCount(const char* what, int64_t count) {
  if (count < 0 || count > Submission::kMaxCount) {
    ThrowInvalid("number of ", what, " is ", count, ", expected 0 to ", Submission::kMaxCount);
  }
}

void CheckThere(const char* what, const void* values, int64_t count) {
  if (count > 0 && values == nullptr) ThrowInvalid(what, " is null, expected ", count, " values");
}

void CheckThetas(const Submission& in) {
  CheckCount("thetas", in.num_thetas);
  if (in.num_thetas == 0) return;
  const int64_t most = Submission::kMaxWeights / in.num_thetas;
  if (in.theta_size < 1 || in.theta_size > most) {
    ThrowInvalid("theta_size is ", in.theta_size, ", expected 1 to ", most, " for ", in.num_thetas, " thetas");
  }
  CheckThere("thetas", in.thetas, in.num_thetas);
}

// Check that the splits start at 0, never descend and end at the number of mutations, so that indices stay in bounds.
void CheckChains(const Submission& in) {
  CheckCount("mutations", in.num_mutations);
  CheckThere("chain_splits", in.chain_splits, in.num_genomes + 1);
  CheckThere("chain_seeds", in.chain_seeds, in.num_mutations);
  CheckThere("chain_scales", in.chain_scales, in.num_mutations);
  if (in.chain_splits[0] != 0) ThrowInvalid("chain_splits begin at ", in.chain_splits[0], ", expected 0");
  for (int64_t g = 0; g < in.num_genomes; ++g) {
    const int64_t begin = in.chain_splits[g], end = in.chain_splits[g + 1];
    if (end < begin || end > in.num_mutations) {
      ThrowInvalid("chain_splits of genome ", g, " are ", begin, ", ", end, ", expected ascending in [0, ",
                   in.num_mutations, "]");
    }
  }
  if (in.chain_splits[in.num_genomes] != in.num_mutations) {
    ThrowInvalid("chain_splits end at ", in.chain_splits[in.num_genomes],
                 ", expected the number of mutations: ", in.num_mutations);
  }
}

std::vector<Theta> Thetas(const Submission& in) {
  std::vector<Theta> thetas;
  thetas.reserve(in.num_thetas);
  for (int64_t v = 0; v < in.num_thetas; ++v) {
    const float* theta = in.thetas + v * in.theta_size;
    thetas.push_back(std::make_shared<const std::vector<float>>(theta, theta + in.theta_size));
  }
  return thetas;
}

std::vector<std::shared_ptr<const GenomeRecipe>> Genomes(const Submission& in) {
  CheckCount("genomes", in.num_genomes);
  CheckThere("genome_networks", in.genome_networks, in.num_genomes);
  CheckThere("genome_sources", in.genome_sources, in.num_genomes);
  CheckThere("genome_seeds", in.genome_seeds, in.num_genomes);
  CheckChains(in);
  CheckThetas(in);
  const std::vector<Theta> thetas = Thetas(in);
  std::vector<std::shared_ptr<const GenomeRecipe>> genomes;
  genomes.reserve(in.num_genomes);
  for (int64_t g = 0; g < in.num_genomes; ++g) {
    auto genome = std::make_shared<GenomeRecipe>();
    genome->id = in.genome_ids == nullptr ? g : in.genome_ids[g];
    genome->source_row = in.genome_sources[g];
    genome->network = in.genome_networks[g];
    if (genome->network < 0) ThrowInvalid("network of genome ", g, " is ", genome->network, ", expected 0 or more");
    genome->seed = in.genome_seeds[g];
    const int64_t theta = in.genome_thetas == nullptr ? -1 : in.genome_thetas[g];
    if (theta != -1) {
      CheckIndex("theta of a genome", theta, in.num_thetas);
      genome->theta = thetas[theta];
    }
    genome->chain.reserve(in.chain_splits[g + 1] - in.chain_splits[g]);
    for (int64_t m = in.chain_splits[g]; m < in.chain_splits[g + 1]; ++m) {
      const int64_t spread = in.chain_spreads == nullptr ? -1 : in.chain_spreads[m];
      genome->chain.push_back({in.chain_seeds[m], in.chain_scales[m], spread});
    }
    genomes.push_back(std::move(genome));
  }
  return genomes;
}

}  // namespace

std::vector<QueuedEpisode> BuildEpisodes(const Submission& in) {
  CheckCount("episodes", in.num_episodes);
  CheckThere("episode_genomes", in.episode_genomes, in.num_episodes);
  CheckThere("episode_seeds", in.episode_seeds, in.num_episodes);
  CheckThere("episode_max_frames", in.episode_max_frames, in.num_episodes);
  const auto genomes = Genomes(in);
  std::vector<QueuedEpisode> episodes;
  episodes.reserve(in.num_episodes);
  for (int64_t e = 0; e < in.num_episodes; ++e) {
    const int64_t id = in.episode_ids == nullptr ? e : in.episode_ids[e];
    const int64_t normalizer = in.episode_normalizers == nullptr ? -1 : in.episode_normalizers[e];
    CheckIndex("genome of an episode", in.episode_genomes[e], in.num_genomes);
    if (in.episode_max_frames[e] < 0) {
      ThrowInvalid("max_frames of episode ", id, " is ", in.episode_max_frames[e], ", expected 0 or more");
    }
    if (normalizer < -1) {
      ThrowInvalid("normalizer of episode ", id, " is ", normalizer, ", expected -1 (none) or more");
    }
    episodes.push_back({id, in.episode_seeds[e], in.episode_max_frames[e], genomes[in.episode_genomes[e]], normalizer});
  }
  return episodes;
}

}  // namespace neuroevo
