// The episode queue in long plays: random episodes of few genomes in one thread, and thousands in many.
#include <algorithm>
#include <atomic>
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

#include "native/check.h"
#include "native/rollout/symbolic_rows.h"
#include "rollout/episode_queue.h"

using namespace neuroevo;

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
      std::vector<ChainLink> chain;
      for (uint32_t m = random() % 4; m > 0; --m) {
        const int64_t spread = static_cast<int64_t>(random() % (first_row + 1)) - 1;
        chain.push_back({random() % 9, 0.5f, spread});
      }
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
  std::vector<EpisodeResult> results;
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
      std::vector<EpisodeEnd> ends;
      for (size_t k = 0; k < live.slots.size(); ++k) {
        if (dones[k]) ends.push_back({"slot " + std::to_string(live.slots[k])});
      }
      const auto put = queue.Put(lane, live.slots, rewards.data(), dones.get(), std::move(ends));
      live = put.live;
      refill_due = put.refill;
      if (random() % 4 == 0) std::this_thread::yield();
      std::lock_guard<std::mutex> lock(mutex);
      for (const auto& result : queue.Results()) results.push_back(result);
      if (results.size() == kEpisodes) progress.notify_one();
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
    progress.wait(lock, [&] { return results.size() == kEpisodes || !failures.empty(); });
  }
  queue.Close();
  for (auto& thread : threads) thread.join();
  CHECK_EQ(failures, std::vector<std::string>{});
  CHECK_EQ(queue.TotalSteps(), steps.load());
  std::set<int64_t> ids;
  for (const EpisodeResult& result : results) {
    ids.insert(result.id);
    CHECK_EQ(result.steps, length_of(result.id));
    CHECK_EQ(result.total_reward, static_cast<double>(result.id * length_of(result.id)));
  }
  CHECK_EQ(ids.size(), kEpisodes);
  CHECK_EQ(results.size(), kEpisodes);
}
