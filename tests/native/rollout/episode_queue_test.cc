// The episode queue: which row holds which genome, when a Take waits, what Put books, and every error. (Long random
// plays are in episode_queue_plays_test.cc.)
#include "rollout/episode_queue.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "native/check.h"
#include "native/rollout/symbolic_rows.h"

using namespace neuroevo;

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
  CHECK_EQ(second.seeds, (std::vector<uint64_t>{503}));
  CHECK_EQ(second.live.slots, (Ints{3}));
  CHECK(second.live.rows[0] >= 7 && second.live.rows[0] < 10);
  CHECK_EQ(second.init_rows, second.live.rows);
}

TEST(SourceRows) {
  EpisodeQueue queue(1, 3, 5);
  const Genome as_it_is = MakeGenome(1, {}, 3), mutated = MakeGenome(2, {{7, 1.f}, {8, 2.f, 0}}, 4);
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
  CHECK_EQ(refill.perturb_spreads, (Ints{-1, 0}));
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
    CHECK_EQ(first.seeds, (std::vector<uint64_t>{504, 500}));
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
    CHECK_EQ(second.seeds, (std::vector<uint64_t>{501, 502}));
    CHECK_EQ(second.assign_rows, second.live.rows);
    CHECK(second.live.rows[0] >= 5 && second.live.rows[0] != second.live.rows[1]);

    PutOnes(&queue, 0, {0, 1}, {0});
    const Refill third = TakeNow(&queue, 0);  // another episode of what slot 1 plays: its row is shared
    CHECK_EQ(third.seeds, (std::vector<uint64_t>{503}));
    CHECK_EQ(third.live.rows, (Ints{row_p, row_p}));
    CHECK_EQ(Written(third).size(), 0);
  }
  CHECK(!alive.expired());
  PutOnes(&queue, 0, {0, 1}, {0, 1});
  CHECK(!alive.expired());
  PutOnes(&queue, 1, {2, 3}, {2, 3});
  CHECK(alive.expired());  // freed with the last episode that starts from it
}

TEST(ARowIsKeptWhileItIsPlayedAndUntilItIsNeeded) {
  EpisodeQueue queue(1, 2, 0);
  const Genome a = MakeGenome(1), b = MakeGenome(2), c = MakeGenome(3);
  queue.Submit({Episode(0, a), Episode(1, a), Episode(2, b), Episode(3, a), Episode(4, c), Episode(5, b)});
  Refill refill = TakeNow(&queue, 0);
  const int64_t row_a = refill.live.rows[0];
  CHECK_EQ(refill.live.rows, (Ints{row_a, row_a}));
  PutOnes(&queue, 0, {0, 1}, {0});
  refill = TakeNow(&queue, 0);  // b, in addition to a in slot 1
  const int64_t row_b = 1 - row_a;
  CHECK_EQ(refill.live.rows, (Ints{row_b, row_a}));
  CHECK_EQ(refill.init_rows, (Ints{row_b}));
  PutOnes(&queue, 0, {0, 1}, {1});
  refill = TakeNow(&queue, 0);  // a again: no slot has played it meanwhile, but it is still in its row
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
  queue.Put(0, {0, 1}, rewards, none, {});
  queue.Put(0, {1}, rewards + 1, none, {});  // part of the live slots
  queue.Put(1, {2}, rewards, none, {});
  CHECK_EQ(queue.Results().size(), 0);
  queue.Put(0, {0, 1}, rewards, second, {{"broke", 2, {1, 2, 4}, {7}}});
  queue.Put(0, {0}, rewards, all, {EpisodeEnd()});
  CHECK_EQ(queue.TotalSteps(), 7);  // including the running episode's step
  const std::vector<EpisodeResult> results = queue.Results();
  CHECK_EQ(results.size(), 2);
  CHECK_EQ(results[0].id, 71);
  CHECK_EQ(results[0].total_reward, -9);
  CHECK_EQ(results[0].steps, 3);
  CHECK_EQ(results[0].end.failure, "broke");  // includes the pool's report
  CHECK_EQ(results[0].end.retries, 2);
  CHECK_EQ(results[0].end.observation_sums, (std::vector<double>{1, 2, 4}));
  CHECK_EQ(results[0].end.behavior, std::vector<uint8_t>{7});
  CHECK_EQ(results[1].id, 70);
  CHECK_EQ(results[1].total_reward, 0.75);
  CHECK_EQ(results[1].steps, 3);
  CHECK_EQ(results[1].end.failure + "|", "|");
  CHECK_EQ(WidthOf(results, &EpisodeEnd::observation_sums), 3);
  double sums[6];
  CopyRows(results, &EpisodeEnd::observation_sums, sums);
  CHECK_EQ(std::vector<double>(sums, sums + 6), (std::vector<double>{1, 2, 4, 0, 0, 0}));
  CHECK_EQ(queue.Results().size(), 0);  // each result is returned once
}

TEST(AReturnThatIsNotFiniteIsAFailure) {
  EpisodeQueue queue(1, 2, 0);
  const Genome genome = MakeGenome(1);
  queue.Submit({Episode(70, genome), Episode(71, genome)});
  TakeNow(&queue, 0);
  const double rewards[] = {1e308, -1e308};
  const bool none[] = {false, false}, all[] = {true, true};
  queue.Put(0, {0, 1}, rewards, none, {});
  queue.Put(0, {0, 1}, rewards, all, {EpisodeEnd(), {"broke"}});
  const std::vector<EpisodeResult> results = queue.Results();
  CHECK_EQ(results[0].total_reward, 0);
  CHECK_EQ(results[0].end.failure, "the return is inf");
  CHECK_EQ(results[1].total_reward, 0);
  CHECK_EQ(results[1].end.failure, "broke");
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
  CHECK(PutOnes(&queue, 0, {0, 1}, {}).refill);  // so that the lane calls Take and sees that the queue is closed
}

TEST(LowerPriorityNumbersComeFirst) {
  EpisodeQueue queue(1, 2, 0);
  queue.Submit({Episode(30, MakeGenome(0)), Episode(31, MakeGenome(0))}, 3);
  CHECK_EQ(TakeNow(&queue, 0).seeds, (std::vector<uint64_t>{530, 531}));  // nothing more urgent is queued
  queue.Submit({Episode(40, MakeGenome(1))}, 4);
  queue.Submit({Episode(32, MakeGenome(2))}, 3);
  queue.Submit({Episode(20, MakeGenome(3)), Episode(21, MakeGenome(3))}, 2);
  queue.Submit({Episode(0, MakeGenome(4))}, -1);
  std::vector<uint64_t> seeds;
  std::set<int64_t> done = {0};
  for (int i = 0; i < 5; ++i) {
    CHECK(PutOnes(&queue, 0, {0, 1}, done).refill);
    const Refill refill = TakeNow(&queue, 0);
    CHECK_EQ(refill.slots, (Ints{0}));  // slot 1's episode continues, however low its priority
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
  const std::vector<EpisodeResult> two = queue.Results(2, milliseconds(60'000));
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
  const auto put = queue.Put(1, {}, nullptr, nullptr, {});
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
  const double rewards[] = {1, 1};
  const bool dones[] = {false, true};
  CHECK_THROWS(queue.Put(0, {0, 1}, rewards, dones, {}), "0 ends of episodes, expected one for each that is done: 1");
  CHECK_THROWS(queue.Put(0, {0, 1}, rewards, dones, {{}, {}}), "2 ends of episodes, expected one for each");
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
  CHECK_THROWS(queue.Submit({Episode(0, good), Episode(1, MakeGenome(2, {{7, 1.f}, {8, 1.f, 3}}, 0))}),
               "spread row 3 of genome 2 is out of range [-1, 3)");
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
  std::map<int64_t, Refill> resumed;  // lane -> its refill
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
  CHECK_EQ(resumed.at(0).seeds, (std::vector<uint64_t>{507}));  // the other lanes continue
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
  const auto results = queue.Results();
  CHECK_EQ(results.size(), 2);
  CHECK_EQ(results[1].id, 2);
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
