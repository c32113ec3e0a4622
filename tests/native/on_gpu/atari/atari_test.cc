// Complete rollouts: the lane runner plays Atari episodes with networks on a GPU, and every episode has the same number
// of steps and the same score as with networks on the CPU.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "native/envs/atari/games.h"
#include "native/on_gpu/rows.h"
#include "rollout/lane_runner.h"

using namespace neuroevo;

namespace {

constexpr int64_t kParents = 2;
const char kSmall[] = "input uint8 84 84 4; conv 8 8 8 8 valid 1.0; bias; relu; dense 18 0.1; bias";
const char kOther[] =
    "input uint8 84 84 4; conv 4 12 12 12 valid 1.0; bias; relu; dense 20 1; bias; relu; dense 18 0.1";

struct Layout {
  int64_t lanes, slots;
  int threads;
};

using Outcomes = std::map<int64_t, std::pair<double, int64_t>>;  // id -> score, steps

// Episodes of genomes of all kinds, some genomes with several episodes, which end at different times.
std::vector<QueuedEpisode> Episodes(int64_t count, int64_t max_frames, int32_t networks) {
  std::vector<QueuedEpisode> episodes;
  std::vector<std::shared_ptr<const GenomeRecipe>> genomes;
  for (int64_t g = 0; g < (count + 1) / 2; ++g) {
    auto genome = std::make_shared<GenomeRecipe>();
    genome->id = g;
    genome->source_row = g % 2 == 0 ? g / 2 % kParents : -1;
    genome->network = static_cast<int32_t>(g % networks);
    genome->seed = g;
    for (int64_t m = 0; m < g % 3; ++m) genome->chain.push_back({static_cast<uint64_t>(g * 10 + m), 0.05f});
    genomes.push_back(std::move(genome));
  }
  for (int64_t e = 0; e < count; ++e) {
    const int64_t frames = max_frames / 2 + e * 37 % (max_frames / 2);
    episodes.push_back({e, static_cast<uint64_t>(1000 + e), frames, genomes[e * 11 % genomes.size()]});
  }
  return episodes;
}

Outcomes Play(const std::string& backend, const std::vector<std::string>& texts, DType dtype, const Layout& layout,
              const std::vector<QueuedEpisode>& episodes) {
  const auto pool = std::make_shared<ThreadPool>(layout.threads);
  const int64_t slots = layout.lanes * layout.slots;
  EnvPool envs("atari", Games::WithRom("frostbite", {}), slots, pool);
  std::vector<Network> networks;
  for (const std::string& text : texts) networks.push_back(Network::Parse(text));
  const auto population = Population::Make(backend, networks, kParents + slots, pool, dtype, kParents);
  population->Init({0, 1}, {0, static_cast<int32_t>(texts.size()) - 1}, {71, 72});
  EpisodeQueue queue(layout.lanes, layout.slots, kParents);
  queue.Submit(episodes);
  Outcomes outcomes;
  for (const EpisodeResult& result : RunLanes(&envs, population.get(), &queue, episodes.size())) {
    CHECK(outcomes.emplace(result.id, std::make_pair(result.total_reward, result.steps)).second);
  }
  return outcomes;
}

}  // namespace

TEST(EpisodesEndAsOnTheCpuWhateverTheLanes) {
  NeedGpu();
  const int64_t count = FullSize() ? 64 : 10, frames = FullSize() ? 1000 : 80;
  const std::vector<std::string> texts =
      FullSize() ? std::vector<std::string>{kLargeModel, kOther} : std::vector<std::string>{kSmall, kOther};
  const auto episodes = Episodes(count, frames, 2);
  for (DType dtype : {DType::kFloat32, DType::kInt8}) {
    const Outcomes expected = Play("cpu", texts, dtype, {2, 4, 4}, episodes);
    CHECK_EQ(expected.size(), episodes.size());
    const std::vector<Layout> layouts = FullSize() ? std::vector<Layout>{{1, 1, 1}, {3, 16, 8}, {2, 40, 16}}
                                                   : std::vector<Layout>{{1, 3, 1}, {2, 3, 2}};
    for (const Layout& layout : layouts) {
      const Outcomes found = Play(NEUROEVO_CUDA_BACKEND, texts, dtype, layout, episodes);
      CHECK_EQ(found.size(), expected.size());
      for (const auto& [id, outcome] : expected) {
        if (found.at(id) == outcome) continue;
        check::Fail(__FILE__, __LINE__,
                    Concat("episode ", id, " ended with ", found.at(id).first, " after ", found.at(id).second,
                           " steps, expected ", outcome.first, " after ", outcome.second));
      }
    }
  }
}
