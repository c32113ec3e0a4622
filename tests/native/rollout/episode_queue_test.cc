// The episode queue: which row holds which genome, when a Take waits, what Put books, and every error. What the rows
// hold is followed with symbols: a row's "weights" are the recipe that the refills have carried out on it.
#include "rollout/episode_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

using Ints = std::vector<int64_t>;
using Genome = std::shared_ptr<const GenomeRecipe>;

Genome MakeGenome(int64_t id, std::vector<std::pair<uint64_t, float>> chain = {}, int64_t source_row = -1,
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

Theta MakeTheta(float value) { return std::make_shared<const std::vector<float>>(2, value); }

QueuedEpisode Episode(int64_t id, Genome genome) { return {id, 500 + static_cast<uint64_t>(id), 10 * id, genome}; }

// A Take that does not have to wait.
Refill TakeNow(EpisodeQueue* queue, int64_t lane) {
  std::optional<Refill> taken;
  queue->Take(lane, [&](Refill refill) { taken = std::move(refill); });
  CHECK(taken.has_value());
  return *taken;
}

// Books a step in which every slot earns 1.
EpisodeQueue::PutResult PutOnes(EpisodeQueue* queue, int64_t lane, const Ints& slots, const std::set<int64_t>& done) {
  const std::vector<double> rewards(slots.size(), 1);
  auto dones = std::make_unique<bool[]>(slots.size());
  for (size_t k = 0; k < slots.size(); ++k) dones[k] = done.count(slots[k]) > 0;
  return queue->Put(lane, slots, rewards.data(), dones.get());
}

// What a row holds that was assigned.
std::string Text(int32_t network, const Theta& theta) {
  return "theta " + std::to_string(network) + " " + std::to_string(theta->at(1));
}

// What a row holds: a source row, or network and theta or seed, and the mutations since.
std::string Text(const GenomeRecipe& genome) {
  std::string text = genome.theta ? Text(genome.network, genome.theta)
                     : genome.source_row >= 0
                         ? "row " + std::to_string(genome.source_row)
                         : "init " + std::to_string(genome.network) + " " + std::to_string(genome.seed);
  for (const auto& [seed, scale] : genome.chain) text += " " + std::to_string(seed) + "*" + std::to_string(scale);
  return text;
}

// Carries out refills on symbols.
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
      rows_[refill.perturb_dst[i]] = rows_.at(refill.perturb_src.at(i)) + " " +
                                     std::to_string(refill.perturb_seeds.at(i)) + "*" +
                                     std::to_string(refill.perturb_scales.at(i));
    }
  }
  const std::string& At(int64_t row) const { return rows_.at(row); }

 private:
  std::map<int64_t, std::string> rows_;
};

// Rows that a refill writes.
std::set<int64_t> Written(const Refill& refill) {
  std::set<int64_t> rows(refill.init_rows.begin(), refill.init_rows.end());
  rows.insert(refill.assign_rows.begin(), refill.assign_rows.end());
  rows.insert(refill.perturb_dst.begin(), refill.perturb_dst.end());
  return rows;
}

}  // namespace

TEST(AFirstRefill) {
  EpisodeQueue queue(2, 3, 4);
  CHECK_EQ(queue.lanes(), 2);
  CHECK_EQ(queue.slots_per_lane(), 3);
  const Genome a = MakeGenome(10, {{1, 0.5f}, {2, 0.25f}}), b = MakeGenome(11), c = MakeGenome(12, {{3, 1.f}});
  QueuedEpisode normalized = Episode(1, b);
  normalized.normalizer = 8;
  queue.Submit({Episode(0, a), normalized, Episode(2, a), Episode(3, c)});
  const Refill first = TakeNow(&queue, 0);
  CHECK(!first.closed);
  CHECK_EQ(first.slots, (Ints{0, 1, 2}));
  CHECK_EQ(first.live.slots, first.slots);
  CHECK_EQ(first.seeds, (std::vector<uint64_t>{500, 501, 502}));
  CHECK_EQ(first.max_frames, (Ints{0, 10, 20}));
  CHECK_EQ(first.episodes, (Ints{0, 1, 2}));
  CHECK_EQ(first.normalizers, (Ints{-1, 8, -1}));
  const int64_t row_a = first.live.rows[0], row_b = first.live.rows[1];
  CHECK_EQ(first.live.rows[2], row_a);  // two episodes of one genome, one row
  CHECK(row_a != row_b);
  for (int64_t row : {row_a, row_b}) CHECK(row >= 4 && row < 7);
  CHECK_EQ(first.init_rows, (Ints{row_a, row_b}));
  CHECK_EQ(first.init_networks, (std::vector<int32_t>{0, 1}));
  CHECK_EQ(first.init_seeds, (std::vector<uint64_t>{1010, 1011}));
  CHECK_EQ(first.perturb_dst, (Ints{row_a, row_a}));
  CHECK_EQ(first.perturb_src, (Ints{row_a, row_a}));
  CHECK_EQ(first.perturb_seeds, (std::vector<uint64_t>{1, 2}));
  CHECK_EQ(first.perturb_scales, (std::vector<float>{0.5f, 0.25f}));

  const Refill second = TakeNow(&queue, 1);
  CHECK_EQ(second.slots, (Ints{3}));
  CHECK_EQ(second.episodes, (Ints{3}));
  CHECK_EQ(second.live.slots, (Ints{3}));
  CHECK(second.live.rows[0] >= 7 && second.live.rows[0] < 10);
  CHECK_EQ(second.init_rows, second.live.rows);
}

TEST(SourceRows) {
  EpisodeQueue queue(1, 3, 5);
  const Genome as_it_is = MakeGenome(1, {}, 3), mutated = MakeGenome(2, {{7, 1.f}, {8, 2.f}}, 4);
  queue.Submit({Episode(0, as_it_is), Episode(1, mutated), Episode(2, as_it_is)});
  const Refill refill = TakeNow(&queue, 0);
  const int64_t row = refill.live.rows[1];
  CHECK(row >= 5 && row < 8);
  CHECK_EQ(refill.live.rows, (Ints{3, row, 3}));  // played where it is
  CHECK_EQ(refill.init_rows, Ints{});
  CHECK_EQ(refill.perturb_dst, (Ints{row, row}));
  CHECK_EQ(refill.perturb_src, (Ints{4, row}));
  CHECK_EQ(refill.perturb_seeds, (std::vector<uint64_t>{7, 8}));
  CHECK_EQ(refill.perturb_scales, (std::vector<float>{1, 2}));
  // An episode in a caller's row ends without touching the lane's rows.
  const auto put = PutOnes(&queue, 0, {0, 1, 2}, {0, 2});
  CHECK_EQ(put.live.slots, (Ints{1}));
  CHECK_EQ(put.live.rows, (Ints{row}));
  queue.Submit({Episode(3, mutated), Episode(4, MakeGenome(3))});
  const Refill next = TakeNow(&queue, 0);
  CHECK_EQ(next.live.slots, (Ints{0, 1, 2}));
  CHECK_EQ(next.live.rows[0], row);
  CHECK_EQ(next.perturb_dst, Ints{});  // already in its row
  CHECK_EQ(next.init_rows, (Ints{next.live.rows[2]}));
}

TEST(Thetas) {
  EpisodeQueue queue(2, 2, 3);
  Theta theta = MakeTheta(4);
  const std::weak_ptr<const std::vector<float>> alive = theta;
  Genome plain = MakeGenome(1, {}, -1, theta), mutated = MakeGenome(2, {{7, 1.f}, {8, 2.f}}, -1, theta);
  queue.Submit({Episode(0, plain), Episode(1, plain), Episode(2, mutated), Episode(3, plain)}, 5);
  queue.Submit({Episode(4, mutated)}, 1);  // more urgent
  theta.reset();
  plain = mutated = nullptr;
  {
    const Refill first = TakeNow(&queue, 0);
    CHECK_EQ(first.episodes, (Ints{4, 0}));
    const int64_t row_m = first.live.rows[0], row_p = first.live.rows[1];
    CHECK(row_m != row_p && std::min(row_m, row_p) == 3 && std::max(row_m, row_p) == 4);
    CHECK_EQ(first.assign_rows, (Ints{row_m, row_p}));
    CHECK_EQ(first.assign_networks, (std::vector<int32_t>{0, 1}));
    CHECK_EQ(first.assign_thetas.size(), 2);
    for (const Theta& each : first.assign_thetas) CHECK_EQ(*each, (std::vector<float>{4, 4}));
    CHECK_EQ(first.init_rows, Ints{});
    CHECK_EQ(first.perturb_dst, (Ints{row_m, row_m}));
    CHECK_EQ(first.perturb_src, (Ints{row_m, row_m}));
    const Refill second = TakeNow(&queue, 1);  // its own rows
    CHECK_EQ(second.episodes, (Ints{1, 2}));
    CHECK_EQ(second.assign_rows, second.live.rows);
    CHECK(second.live.rows[0] >= 5 && second.live.rows[0] != second.live.rows[1]);

    PutOnes(&queue, 0, {0, 1}, {0});
    const Refill third = TakeNow(&queue, 0);  // another episode of what slot 1 plays: its row is shared
    CHECK_EQ(third.episodes, (Ints{3}));
    CHECK_EQ(third.live.rows, (Ints{row_p, row_p}));
    CHECK_EQ(Written(third).size(), 0);
  }
  CHECK(!alive.expired());
  PutOnes(&queue, 0, {0, 1}, {0, 1});
  CHECK(!alive.expired());
  PutOnes(&queue, 1, {2, 3}, {2, 3});
  CHECK(alive.expired());  // freed with the last episode that starts from it
}

TEST(ThetasOfPointers) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto thetas = SplitThetas(values.data(), 2, 3);
  CHECK_EQ(thetas.size(), 2);
  CHECK_EQ(*ThetaOf(0, thetas), (std::vector<float>{1, 2, 3}));
  CHECK_EQ(*ThetaOf(1, thetas), (std::vector<float>{4, 5, 6}));
  CHECK(ThetaOf(-1, thetas) == nullptr);
  CHECK_EQ(SplitThetas(nullptr, 0, 0).size(), 0);
  CHECK_THROWS(ThetaOf(2, thetas), "theta of a genome 2 is out of range [0, 2)");
  CHECK_THROWS(ThetaOf(-2, thetas), "theta of a genome -2 is out of range [0, 2)");
  CHECK_THROWS(SplitThetas(values.data(), -1, 3), "-1 thetas of 3 weights");
  CHECK_THROWS(SplitThetas(values.data(), 1, -3), "1 thetas of -3 weights");
}

TEST(ARowIsKeptWhileItIsPlayedAndUntilItIsNeeded) {
  EpisodeQueue queue(1, 2, 0);
  const Genome a = MakeGenome(1), b = MakeGenome(2), c = MakeGenome(3);
  queue.Submit({Episode(0, a), Episode(1, a), Episode(2, b), Episode(3, a), Episode(4, c), Episode(5, b)});
  Refill refill = TakeNow(&queue, 0);
  const int64_t row_a = refill.live.rows[0];
  CHECK_EQ(refill.live.rows, (Ints{row_a, row_a}));
  PutOnes(&queue, 0, {0, 1}, {0});
  refill = TakeNow(&queue, 0);  // b, beside the a of slot 1
  const int64_t row_b = 1 - row_a;
  CHECK_EQ(refill.live.rows, (Ints{row_b, row_a}));
  CHECK_EQ(refill.init_rows, (Ints{row_b}));
  PutOnes(&queue, 0, {0, 1}, {1});
  refill = TakeNow(&queue, 0);  // a again: nobody has played it meanwhile, but it is still in its row
  CHECK_EQ(refill.live.rows, (Ints{row_b, row_a}));
  CHECK_EQ(refill.init_rows, Ints{});
  PutOnes(&queue, 0, {0, 1}, {0});
  refill = TakeNow(&queue, 0);  // c drives b out
  CHECK_EQ(refill.live.rows, (Ints{row_b, row_a}));
  CHECK_EQ(refill.init_rows, (Ints{row_b}));
  PutOnes(&queue, 0, {0, 1}, {1});
  refill = TakeNow(&queue, 0);  // b must be made again
  CHECK_EQ(refill.init_rows, (Ints{row_a}));
  CHECK_EQ(refill.init_seeds, (std::vector<uint64_t>{1002}));
  CHECK_EQ(PutOnes(&queue, 0, {0, 1}, {0, 1}).live.slots, Ints{});
  CHECK_EQ(queue.Results().size(), 6);
}

TEST(PutAddsUpAndRecords) {
  EpisodeQueue queue(2, 2, 0);
  const Genome genome = MakeGenome(1);
  queue.Submit({Episode(70, genome), Episode(71, genome), Episode(72, genome)});
  TakeNow(&queue, 0);
  TakeNow(&queue, 1);
  const double rewards[] = {0.25, -3};
  const bool none[] = {false, false}, second[] = {false, true}, all[] = {true};
  queue.Put(0, {0, 1}, rewards, none);
  queue.Put(0, {1}, rewards + 1, none);  // part of the live slots
  queue.Put(1, {2}, rewards, none);
  CHECK_EQ(queue.Results().size(), 0);
  queue.Put(0, {0, 1}, rewards, second);
  queue.Put(0, {0}, rewards, all);
  CHECK_EQ(queue.TotalSteps(), 7);  // that of the episode that goes on included
  const std::vector<EpisodeOutcome> outcomes = queue.Results();
  CHECK_EQ(outcomes.size(), 2);
  CHECK_EQ(outcomes[0].id, 71);
  CHECK_EQ(outcomes[0].total_reward, -9);
  CHECK_EQ(outcomes[0].steps, 3);
  CHECK_EQ(outcomes[1].id, 70);
  CHECK_EQ(outcomes[1].total_reward, 0.75);
  CHECK_EQ(outcomes[1].steps, 3);
  CHECK_EQ(queue.Results().size(), 0);  // handed out once
}

TEST(TheRefillFlag) {
  EpisodeQueue queue(1, 2, 0);
  CHECK(PutOnes(&queue, 0, {}, {}).refill);  // nothing is live
  const Genome genome = MakeGenome(1);
  queue.Submit({Episode(0, genome), Episode(1, genome), Episode(2, genome)});
  TakeNow(&queue, 0);
  CHECK(!PutOnes(&queue, 0, {0, 1}, {}).refill);  // an episode waits, but no slot is free
  CHECK(PutOnes(&queue, 0, {0, 1}, {1}).refill);
  CHECK(PutOnes(&queue, 0, {0}, {}).refill);  // as long as the slot is free
  TakeNow(&queue, 0);
  CHECK(!PutOnes(&queue, 0, {0, 1}, {0}).refill);  // a slot is free, but no episode waits
  queue.Submit({Episode(3, genome)});
  CHECK(PutOnes(&queue, 0, {1}, {}).refill);
  TakeNow(&queue, 0);
  CHECK(!PutOnes(&queue, 0, {0, 1}, {1}).refill);
  const auto last = PutOnes(&queue, 0, {0}, {0});
  CHECK(last.refill);
  CHECK_EQ(last.live.slots, Ints{});
  queue.Submit({Episode(4, genome), Episode(5, genome)});
  TakeNow(&queue, 0);
  queue.Close();
  CHECK(PutOnes(&queue, 0, {0, 1}, {}).refill);  // so that the lane comes and hears that it is over
}

TEST(LowerPriorityNumbersComeFirst) {
  EpisodeQueue queue(1, 2, 0);
  queue.Submit({Episode(30, MakeGenome(0)), Episode(31, MakeGenome(0))}, 3);
  CHECK_EQ(TakeNow(&queue, 0).seeds, (std::vector<uint64_t>{530, 531}));  // nothing more urgent is there
  queue.Submit({Episode(40, MakeGenome(1))}, 4);
  queue.Submit({Episode(32, MakeGenome(2))}, 3);
  queue.Submit({Episode(20, MakeGenome(3)), Episode(21, MakeGenome(3))}, 2);
  queue.Submit({Episode(0, MakeGenome(4))}, -1);
  std::vector<uint64_t> seeds;
  std::set<int64_t> done = {0};
  for (int i = 0; i < 5; ++i) {
    CHECK(PutOnes(&queue, 0, {0, 1}, done).refill);
    const Refill refill = TakeNow(&queue, 0);
    CHECK_EQ(refill.slots, (Ints{0}));  // what plays in slot 1 goes on, however low its priority
    seeds.push_back(refill.seeds.at(0));
  }
  CHECK_EQ(seeds, (std::vector<uint64_t>{500, 520, 521, 532, 540}));
  CHECK(!PutOnes(&queue, 0, {0, 1}, done).refill);
}

TEST(ResultsWait) {
  using std::chrono::milliseconds;
  EpisodeQueue queue(1, 3, 0);
  queue.Submit({Episode(1, MakeGenome(0)), Episode(2, MakeGenome(0)), Episode(3, MakeGenome(0))});
  TakeNow(&queue, 0);
  CHECK_EQ(queue.Results(1, milliseconds(1)).size(), 0u);  // the time is over
  std::thread lane([&] {
    PutOnes(&queue, 0, {0, 1, 2}, {1});
    PutOnes(&queue, 0, {0, 2}, {0});
    PutOnes(&queue, 0, {2}, {});
  });
  const std::vector<EpisodeOutcome> two = queue.Results(2, milliseconds(60'000));
  lane.join();
  CHECK_EQ(two.size(), 2u);
  CHECK_EQ(two[0].id, 2);
  CHECK_EQ(two[1].id, 1);
  PutOnes(&queue, 0, {2}, {2});
  CHECK_EQ(queue.Results(0, milliseconds(60'000)).size(), 1u);
  std::thread closer([&] { queue.Close(); });
  CHECK_EQ(queue.Results(1, milliseconds(60'000)).size(), 0u);
  closer.join();
}

TEST(PutOfNoSlots) {
  EpisodeQueue queue(2, 2, 0);
  queue.Submit({Episode(0, MakeGenome(1))});
  const Refill refill = TakeNow(&queue, 1);
  const auto put = queue.Put(1, {}, nullptr, nullptr);
  CHECK_EQ(put.live.slots, refill.live.slots);
  CHECK_EQ(put.live.rows, refill.live.rows);
  CHECK(!put.refill);
  CHECK_EQ(queue.TotalSteps(), 0);
}

TEST(PutErrorsBookNothing) {
  EpisodeQueue queue(2, 3, 0);
  const Genome genome = MakeGenome(1);
  queue.Submit({Episode(0, genome), Episode(1, genome)});
  TakeNow(&queue, 0);
  CHECK_THROWS(PutOnes(&queue, 0, {0, 3}, {0}), "slot 3 of lane 0 is out of range [0, 3)");
  CHECK_THROWS(PutOnes(&queue, 1, {2}, {}), "slot 2 of lane 1 is out of range [3, 6)");
  CHECK_THROWS(PutOnes(&queue, 0, {0, -1}, {0}), "slot -1 of lane 0 is out of range [0, 3)");
  CHECK_THROWS(PutOnes(&queue, 0, {0, 1, 2}, {0, 1}), "slot 2 plays no episode");
  CHECK_THROWS(PutOnes(&queue, 0, {0, 1, 0}, {0, 1}), "slot 0 is given twice, expected different slots");
  CHECK_THROWS(PutOnes(&queue, 2, {}, {}), "lane 2 is out of range [0, 2)");
  CHECK_THROWS(PutOnes(&queue, -1, {}, {}), "lane -1 is out of range [0, 2)");
  CHECK_EQ(queue.TotalSteps(), 0);
  CHECK_EQ(queue.Results().size(), 0);
  PutOnes(&queue, 0, {0, 1}, {0});
  CHECK_THROWS(PutOnes(&queue, 0, {0, 1}, {}), "slot 0 plays no episode");
  CHECK_EQ(queue.TotalSteps(), 2);
}

TEST(OtherErrors) {
  CHECK_THROWS(EpisodeQueue(0, 1, 0), "number of lanes is 0, expected at least 1");
  CHECK_THROWS(EpisodeQueue(1, -1, 0), "slots per lane is -1, expected at least 1");
  CHECK_THROWS(EpisodeQueue(1, 1, -1), "first row is -1, expected 0 to 1099511627776");
  CHECK_THROWS(EpisodeQueue(1, 1, int64_t{1} << 62), "first row is 4611686018427387904, expected 0 to");
  EpisodeQueue(3, 65536 / 3, 0);
  CHECK_THROWS(EpisodeQueue(3, 65536 / 3 + 1, 0), "3 lanes of 21846 slots, expected at most 65536 slots in all");
  CHECK_THROWS(EpisodeQueue(1, int64_t{1} << 40, 0), "1 lanes of 1099511627776 slots, expected at most 65536");
  CHECK_THROWS(EpisodeQueue(int64_t{1} << 40, 1, 0), "1099511627776 lanes of 1 slots, expected at most 65536");
  EpisodeQueue queue(1, 2, 3);
  const auto ignore = [](Refill) {};
  CHECK_THROWS(queue.Take(1, ignore), "lane 1 is out of range [0, 1)");
  CHECK_THROWS(queue.CloseLane(-1), "lane -1 is out of range [0, 1)");
  const Genome good = MakeGenome(1);
  CHECK_THROWS(queue.Submit({Episode(0, good), Episode(1, MakeGenome(-1))}), "genome id is -1, expected 0 or more");
  CHECK_THROWS(queue.Submit({Episode(0, good), Episode(1, nullptr)}), "episode 1 has no genome");
  CHECK_THROWS(queue.Submit({Episode(0, good), Episode(-1, good)}), "episode id is -1, expected 0 or more");
  CHECK_THROWS(queue.Submit({Episode(0, good), Episode(1, MakeGenome(2, {}, 3))}),
               "source row 3 of genome 2 is out of range [-1, 3)");
  CHECK_THROWS(queue.Submit({Episode(0, good), Episode(1, MakeGenome(2, {}, -2))}), "source row -2 of genome 2");
  CHECK_THROWS(queue.Submit({Episode(0, good), Episode(1, MakeGenome(2, {}, 1, MakeTheta(0)))}),
               "genome 2 has a theta and source row 1, expected one of them");
  int calls = 0;  // none of these submitted anything
  queue.Take(0, [&](Refill) { ++calls; });
  CHECK_EQ(calls, 0);
  CHECK_THROWS(queue.Take(0, ignore), "lane 0 is already waiting for an episode");
  queue.Submit({Episode(0, good)});
  CHECK_EQ(calls, 1);
  queue.Close();
  CHECK_THROWS(queue.Submit({Episode(1, good)}), "the episode queue is closed");
}

TEST(AWaitingTakeIsResumed) {
  EpisodeQueue queue(3, 1, 0);
  std::map<int64_t, Refill> resumed;  // lane -> what it was given
  const auto take = [&](int64_t lane) { queue.Take(lane, [&, lane](Refill r) { resumed[lane] = std::move(r); }); };
  for (int64_t lane : {2, 0, 1}) take(lane);
  CHECK_EQ(resumed.size(), 0);
  queue.Submit({});
  CHECK_EQ(resumed.size(), 0);
  queue.Submit({Episode(5, MakeGenome(1)), Episode(6, MakeGenome(2))});  // by Submit: as many lanes as have work
  CHECK_EQ(resumed.size(), 2);
  CHECK_EQ(resumed.at(0).seeds, (std::vector<uint64_t>{505}));
  CHECK_EQ(resumed.at(1).seeds, (std::vector<uint64_t>{506}));
  CHECK(!resumed.at(0).closed && !resumed.at(1).closed);
  for (int64_t lane : {0, 1}) {
    PutOnes(&queue, lane, {lane}, {lane});
    take(lane);
  }
  resumed.clear();
  queue.CloseLane(2);  // by CloseLane: this one alone
  CHECK_EQ(resumed.size(), 1);
  CHECK(resumed.at(2).closed);
  CHECK(TakeNow(&queue, 2).closed);
  queue.Submit({Episode(7, MakeGenome(3))});
  CHECK_EQ(resumed.at(0).seeds, (std::vector<uint64_t>{507}));  // the others go on
  queue.Close();                                                // by Close
  CHECK_EQ(resumed.size(), 3);
  CHECK(resumed.at(1).closed);
  CHECK_EQ(resumed.at(1).live.slots, Ints{});
}

TEST(Closing) {
  EpisodeQueue queue(2, 2, 0);
  const Genome genome = MakeGenome(1);
  queue.Submit({Episode(0, genome), Episode(1, genome), Episode(2, genome), Episode(3, genome)});
  TakeNow(&queue, 0);
  PutOnes(&queue, 0, {0, 1}, {0});
  queue.CloseLane(0);
  const Refill closed = TakeNow(&queue, 0);
  CHECK(closed.closed);
  CHECK_EQ(closed.slots, Ints{});
  CHECK_EQ(TakeNow(&queue, 1).slots, (Ints{2, 3}));  // the episodes that lane 0 did not take
  queue.Close();
  queue.Close();
  CHECK(TakeNow(&queue, 1).closed);
  PutOnes(&queue, 1, {2, 3}, {2});  // the step that was under way
  const auto outcomes = queue.Results();
  CHECK_EQ(outcomes.size(), 2);
  CHECK_EQ(outcomes[1].id, 2);
}

TEST(CallbacksMayUseTheQueue) {
  // They run without the queue's lock.
  EpisodeQueue queue(2, 1, 0);
  int calls = 0;
  queue.Take(0, [&](Refill) {
    ++calls;
    queue.Submit({Episode(1, MakeGenome(2))});
    queue.Take(1, [&](Refill refill) {
      ++calls;
      CHECK_EQ(refill.slots, (Ints{1}));
      queue.Close();
    });
  });
  queue.Submit({Episode(0, MakeGenome(1))});
  CHECK_EQ(calls, 2);
  CHECK_EQ(queue.TotalSteps(), 0);
}

TEST(EveryLiveSlotPlaysItsGenome) {
  // Random episodes, with few genomes so that rows are shared, kept, driven out and made again.
  std::mt19937 random(1);
  for (int run = 0; run < 60; ++run) {
    const int64_t lanes = 1 + random() % 3, slots = 1 + random() % 5, first_row = random() % 4;
    const uint32_t genomes = 1 + random() % 8;
    EpisodeQueue queue(lanes, slots, first_row);
    Rows rows(first_row);
    std::map<int64_t, Genome> genome_of;            // of each episode
    std::map<int64_t, int64_t> episode_of, row_of;  // of each live slot
    std::vector<Genome> all;
    for (uint32_t g = 0; g < genomes; ++g) {
      std::vector<std::pair<uint64_t, float>> chain;
      for (uint32_t m = random() % 4; m > 0; --m) chain.emplace_back(random() % 9, 0.5f);
      const int64_t source = static_cast<int64_t>(random() % (first_row + 1)) - 1;
      all.push_back(MakeGenome(g, chain, source, source < 0 && random() % 2 == 0 ? MakeTheta(float(g)) : nullptr));
    }
    int64_t submitted = 0, started = 0, ended = 0;
    while (ended < 100) {
      if (submitted < 100 && random() % 3 == 0) {
        std::vector<QueuedEpisode> episodes;
        for (uint32_t n = random() % 8; n > 0 && submitted < 100; --n) {
          genome_of[submitted] = all[random() % genomes];
          episodes.push_back(Episode(submitted, genome_of[submitted]));
          ++submitted;
        }
        queue.Submit(std::move(episodes));
      }
      const int64_t lane = random() % lanes;
      const auto live_of_lane = [&] {
        Ints live;
        for (const auto& [slot, row] : row_of) {
          if (slot / slots == lane) live.push_back(slot);
        }
        return live;
      };
      const Ints before = live_of_lane();
      if (!before.empty() || started < submitted) {
        const Refill refill = TakeNow(&queue, lane);
        const std::set<int64_t> written = Written(refill);
        for (int64_t row : written) {
          CHECK(row >= first_row + lane * slots && row < first_row + (lane + 1) * slots);
          for (int64_t slot : before) CHECK(row_of.at(slot) != row);
        }
        rows.Fill(refill);
        for (int64_t slot : refill.slots) episode_of[slot] = started++;  // first come, first served
        for (size_t k = 0; k < refill.live.slots.size(); ++k) {
          const int64_t slot = refill.live.slots[k], row = refill.live.rows[k];
          CHECK_EQ(rows.At(row), Text(*genome_of.at(episode_of.at(slot))));
          if (std::count(before.begin(), before.end(), slot)) CHECK_EQ(row, row_of.at(slot));
          row_of[slot] = row;
        }
        CHECK(std::is_sorted(refill.live.slots.begin(), refill.live.slots.end()));
        CHECK_EQ(refill.live.slots, live_of_lane());
        CHECK(refill.live.slots.size() == static_cast<size_t>(slots) || started == submitted);
      }
      std::set<int64_t> done;
      const Ints live = live_of_lane();
      for (int64_t slot : live) {
        if (random() % 3 == 0) done.insert(slot);
      }
      PutOnes(&queue, lane, live, done);
      for (int64_t slot : done) row_of.erase(slot);
      ended += static_cast<int64_t>(done.size());
    }
    CHECK_EQ(queue.Results().size(), 100);
  }
}

TEST(LanesInThreads) {
  // Every submitted episode comes out exactly once, with its own length and return, whatever the threads do.
  constexpr int64_t kLanes = 4, kSlots = 5, kFirstRow = 2, kEpisodes = 3000, kGenomes = 40;
  EpisodeQueue queue(kLanes, kSlots, kFirstRow);
  std::vector<Genome> genomes;
  for (int64_t g = 0; g < kGenomes; ++g) {
    genomes.push_back(g % 10 == 0  ? MakeGenome(g, {}, g / 10 % kFirstRow)
                      : g % 6 == 3 ? MakeGenome(g, {{uint64_t(g), 1.f}}, -1, MakeTheta(float(g)))
                                   : MakeGenome(g, {{uint64_t(g), 1.f}}, g % 3 - 1));
  }
  const auto length_of = [](int64_t id) { return 1 + id * 7919 % 6; };
  std::mutex mutex;
  std::condition_variable progress;
  std::vector<EpisodeOutcome> outcomes;
  std::vector<std::string> failures;
  std::atomic<int64_t> steps{0};

  const auto run_lane = [&](int64_t lane) {
    Rows rows(kFirstRow);  // a lane writes its own rows only
    struct Slot {
      int64_t id = -1, steps = 0;
    };
    std::vector<Slot> slots(kLanes * kSlots);
    std::mt19937 random(static_cast<uint32_t>(lane));
    LiveSlots live;
    bool refill_due = true;
    for (;;) {
      if (refill_due) {
        std::mutex taken_mutex;
        std::condition_variable taken;
        std::optional<Refill> refill;
        queue.Take(lane, [&](Refill r) {
          std::lock_guard<std::mutex> lock(taken_mutex);
          refill = std::move(r);
          taken.notify_one();
        });
        std::unique_lock<std::mutex> lock(taken_mutex);
        taken.wait(lock, [&] { return refill.has_value(); });
        if (refill->closed) return;
        rows.Fill(*refill);
        for (size_t i = 0; i < refill->slots.size(); ++i) {
          slots[refill->slots[i]] = {static_cast<int64_t>(refill->seeds[i]) - 500, 0};
        }
        live = refill->live;
        CHECK(!live.slots.empty());
      }
      for (size_t k = 0; k < live.slots.size(); ++k) {
        CHECK_EQ(rows.At(live.rows[k]), Text(*genomes[slots[live.slots[k]].id % kGenomes]));
      }
      std::vector<double> rewards;
      auto dones = std::make_unique<bool[]>(live.slots.size());
      for (size_t k = 0; k < live.slots.size(); ++k) {
        Slot& slot = slots[live.slots[k]];
        rewards.push_back(static_cast<double>(slot.id));
        dones[k] = ++slot.steps == length_of(slot.id);
      }
      steps += static_cast<int64_t>(live.slots.size());
      const auto put = queue.Put(lane, live.slots, rewards.data(), dones.get());
      live = put.live;
      refill_due = put.refill;
      if (random() % 4 == 0) std::this_thread::yield();
      std::lock_guard<std::mutex> lock(mutex);
      for (const auto& outcome : queue.Results()) outcomes.push_back(outcome);
      if (outcomes.size() == kEpisodes) progress.notify_one();
    }
  };
  std::vector<std::thread> threads;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    threads.emplace_back([&, lane] {
      try {
        run_lane(lane);
      } catch (const std::exception& e) {
        std::lock_guard<std::mutex> lock(mutex);
        failures.push_back(e.what());
        progress.notify_one();
      }
    });
  }
  for (int64_t part = 0; part < 2; ++part) {
    threads.emplace_back([&, part] {
      for (int64_t id = part; id < kEpisodes;) {
        std::vector<QueuedEpisode> episodes;
        for (int64_t n = 1 + id % 17; n > 0 && id < kEpisodes; --n, id += 2) {
          episodes.push_back(Episode(id, genomes[id % kGenomes]));
        }
        queue.Submit(std::move(episodes));
      }
    });
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    progress.wait(lock, [&] { return outcomes.size() == kEpisodes || !failures.empty(); });
  }
  queue.Close();
  for (auto& thread : threads) thread.join();
  CHECK_EQ(failures, std::vector<std::string>{});
  CHECK_EQ(queue.TotalSteps(), steps.load());
  std::set<int64_t> ids;
  for (const EpisodeOutcome& outcome : outcomes) {
    ids.insert(outcome.id);
    CHECK_EQ(outcome.steps, length_of(outcome.id));
    CHECK_EQ(outcome.total_reward, static_cast<double>(outcome.id * length_of(outcome.id)));
  }
  CHECK_EQ(ids.size(), kEpisodes);
  CHECK_EQ(outcomes.size(), kEpisodes);
}
