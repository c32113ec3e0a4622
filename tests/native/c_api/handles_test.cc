// Handles with several threads and forks: objects freed while calls on them are in progress, in any order; each result
// of a rollout returned once; children of a process with lanes, workers and calls in progress that free inherited
// objects, create their own, and exit. NEUROEVO_TEST_ROUNDS=10000 repeats everything 10,000 times.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "c_api/neuroevo.h"
#include "c_api/rollout.h"
#include "c_api/vector_env.h"
#include "native/check.h"
#include "native/envs/toys.h"
#include "population/population.h"

using namespace neuroevo;

namespace {

constexpr int64_t kTime = 60'000;  // timeout in ms of operations that normally take milliseconds
constexpr int64_t kLanes = 2, kSlotsPerLane = 2, kSlots = kLanes * kSlotsPerLane, kLength = 3;
constexpr unsigned kChildSeconds = 120;  // a child that hangs is killed by its alarm after this time

// 10,000 rounds start so many threads that the kernel reuses their ids. AddressSanitizer then mistakes a live thread
// for an ended one with the same id, and its memory for a leak, unless kernel.pid_max is raised.
int Rounds() {
  const char* text = std::getenv("NEUROEVO_TEST_ROUNDS");
  return text == nullptr ? 20 : std::atoi(text);
}

void Do(int code) {
  if (code != NEUROEVO_OK) check::Fail(__FILE__, __LINE__, neuroevo_last_error());
}

void CheckFails(int code, const std::string& message) {
  CHECK(code != NEUROEVO_OK);
  CHECK_EQ(std::string(neuroevo_last_error()), message);
}

// Vector environments with their own threads, and the output arrays of a call.
struct Envs {
  Envs() {
    Do(neuroevo_vector_make("toy", nullptr, 0, kSlots, "NextStep", 0, 2, &handle));
    Do(neuroevo_vector_reset(handle, all.data(), all.data(), seeds.data(), &output));
  }
  int Step() { return neuroevo_vector_step(handle, actions.data(), &output); }

  neuroevo_vector_env* handle = nullptr;
  std::vector<float> observations = std::vector<float>(3 * kSlots);
  std::vector<double> rewards = std::vector<double>(kSlots);
  std::vector<uint8_t> ends = std::vector<uint8_t>(3 * kSlots), all = std::vector<uint8_t>(kSlots, 1);
  std::vector<uint64_t> seeds = std::vector<uint64_t>(kSlots, 2);
  std::vector<int64_t> actions = std::vector<int64_t>(kSlots);
  neuroevo_vector_output output = {observations.data(),      rewards.data(), ends.data(), ends.data() + kSlots,
                                   ends.data() + 2 * kSlots, nullptr,        nullptr,     nullptr};
};

// Lanes over environments and networks.
struct Lanes {
  Lanes() {
    const std::string length = "length=" + std::to_string(kLength);
    const char *option = length.c_str(), *network = "input float32 3; dense 4 1.0; bias";
    Do(neuroevo_env_pool_make("toy", &option, 1, kSlots, &pool));
    Do(neuroevo_population_make("cpu", &network, 1, kSlots, "float32", -1, &population));
    Do(neuroevo_rollout_start(pool, population, kLanes, kSlotsPerLane, 0, &rollout));
  }

  void Submit(int64_t episodes) {
    std::vector<int64_t> ids(episodes), genomes(episodes), max_frames(episodes);
    std::vector<uint64_t> seeds(episodes, 2);
    std::iota(ids.begin(), ids.end(), submitted);
    const int32_t network = 0;
    const int64_t genome = int64_t{1} << 40, source = -1, splits[] = {0, 0};
    const uint64_t seed = 7;
    neuroevo_episodes given = {};
    given.num_episodes = episodes;
    given.episode_ids = ids.data();
    given.episode_genomes = genomes.data();
    given.episode_seeds = seeds.data();
    given.episode_max_frames = max_frames.data();
    given.num_genomes = 1;
    given.genome_ids = &genome;
    given.genome_networks = &network;
    given.genome_sources = &source;
    given.genome_seeds = &seed;
    given.chain_splits = splits;
    Do(neuroevo_rollout_submit(rollout, &given, 0));
    submitted += episodes;
  }

  // The ids of the next results, at least `count`.
  std::vector<int64_t> Results(int64_t count) const {
    const neuroevo_results* results = nullptr;
    Do(neuroevo_rollout_results(rollout, count, kTime, &results));
    std::vector<int64_t> ids(results->ids, results->ids + results->count);
    neuroevo_results_free(results);
    return ids;
  }

  neuroevo_env_pool* pool = nullptr;
  neuroevo_population* population = nullptr;
  neuroevo_rollout* rollout = nullptr;
  int64_t submitted = 0;
};

void Free(Lanes* lanes, int order) {
  if (order % 3 == 0) neuroevo_rollout_free(lanes->rollout);
  if (order % 2 == 0) neuroevo_env_pool_free(lanes->pool);
  neuroevo_population_free(lanes->population);
  if (order % 2 == 1) neuroevo_env_pool_free(lanes->pool);
  if (order % 3 != 0) neuroevo_rollout_free(lanes->rollout);
}

// Threads that repeat an action until destruction.
class Threads {
 public:
  explicit Threads(const std::vector<std::function<void()>>& works) {
    for (const auto& work : works) {
      threads_.emplace_back([this, work] {
        while (!over_) work();
      });
    }
  }
  ~Threads() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

// Run body() in a child process, in which it must return without failed checks.
template <class Body>
void InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kChildSeconds);
    try {
      body();
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
    }
    _exit(1);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

}  // namespace

TEST(AFreedHandleIsAnError) {
  Envs envs;
  neuroevo_vector_free(envs.handle);
  CheckFails(envs.Step(), "the vector environment was freed, or the handle is of another kind");
  neuroevo_vector_free(envs.handle);  // as null: there is nothing to be freed
  neuroevo_vector_free(nullptr);
  CheckFails(neuroevo_vector_render(nullptr, nullptr), "the vector environment is null");
  Lanes lanes;
  auto* const other = reinterpret_cast<neuroevo_env_pool*>(lanes.population);
  CheckFails(neuroevo_env_record_behaviors(other, 0, 1), "the env pool was freed, or the handle is of another kind");
  Free(&lanes, 0);
  CheckFails(neuroevo_rollout_close(lanes.rollout), "the rollout was freed, or the handle is of another kind");
}

TEST(EnvironmentsAreFreedWhileAnotherThreadSteps) {
  for (int round = 0; round < Rounds(); ++round) {
    Envs envs;
    std::atomic<int> steps{0};
    std::string ended_by;
    std::thread stepping([&] {
      while (envs.Step() == NEUROEVO_OK) ++steps;
      ended_by = neuroevo_last_error();
    });
    while (steps < round % 5) std::this_thread::yield();
    neuroevo_vector_free(envs.handle);
    stepping.join();
    CHECK_EQ(ended_by, "the vector environment was freed, or the handle is of another kind");
  }
}

TEST(ARolloutKeepsItsParts) {
  for (int round = 0; round < Rounds(); ++round) {
    Lanes lanes;
    lanes.Submit(12);
    neuroevo_env_pool_free(lanes.pool);
    neuroevo_population_free(lanes.population);
    CHECK_EQ(lanes.Results(12).size(), 12);
    neuroevo_rollout_free(lanes.rollout);
    Lanes others;
    others.Submit(12);
    Free(&others, round);
  }
}

TEST(EachResultIsGivenOutOnce) {
  for (int round = 0; round < Rounds(); ++round) {
    constexpr int64_t kEpisodes = 100;
    Lanes lanes;
    std::vector<std::vector<int64_t>> given(3);
    std::vector<std::thread> threads;
    for (std::vector<int64_t>& ids : given) {
      threads.emplace_back([&] {
        for (bool all_ended = false, last = false; !last;) {
          const neuroevo_results* results = nullptr;
          Do(neuroevo_rollout_results(lanes.rollout, 0, 0, &results));
          ids.insert(ids.end(), results->ids, results->ids + results->count);
          last = all_ended;
          all_ended = results->total_steps == kEpisodes * kLength;
          neuroevo_results_free(results);
        }
      });
    }
    lanes.Submit(kEpisodes / 2);
    lanes.Submit(kEpisodes / 2);
    for (std::thread& thread : threads) thread.join();
    std::vector<int64_t> all;
    for (const std::vector<int64_t>& ids : given) all.insert(all.end(), ids.begin(), ids.end());
    std::sort(all.begin(), all.end());
    std::vector<int64_t> expected(kEpisodes);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK_EQ(all, expected);
    Free(&lanes, round);
  }
}

TEST(ARolloutIsFreedWhileAnotherThreadWaitsForResults) {
  for (int round = 0; round < Rounds(); ++round) {
    Lanes lanes;
    lanes.Submit(5);
    std::atomic<bool> begun{false};
    std::thread waiting([&] {
      const neuroevo_results* results = nullptr;
      begun = true;
      if (neuroevo_rollout_results(lanes.rollout, 1000, kTime, &results) == NEUROEVO_OK) neuroevo_results_free(results);
    });
    while (!begun) std::this_thread::yield();
    Free(&lanes, round);
    waiting.join();
  }
}

TEST(BackendsAreRegisteredWhilePopulationsAreMade) {
  const auto maker = [](std::vector<Network>, int64_t, std::shared_ptr<ThreadPool>, DType, int64_t, int) {
    return std::unique_ptr<Population>();
  };
  std::atomic<bool> over{false};
  std::thread registering([&] {
    for (int round = 0; round < Rounds(); ++round)
      Population::Register(("another" + std::to_string(round)).c_str(), maker);
    over = true;
  });
  do {
    neuroevo_population* population = nullptr;
    const char* network = "input float32 3; dense 4 1.0";
    Do(neuroevo_population_make("cpu", &network, 1, 1, "float32", -1, &population));
    neuroevo_population_free(population);
  } while (!over);
  registering.join();
}

TEST(ChildrenFreeWhatTheyInheritAndMakeTheirOwn) {
  Do(neuroevo_set_threads(3));
  Lanes lanes;
  int64_t ended = 0;
  const auto finish = [&] {
    while (ended < lanes.submitted) ended += static_cast<int64_t>(lanes.Results(lanes.submitted - ended).size());
  };
  lanes.Submit(40);
  finish();
  Envs idle, envs;
  std::vector<std::function<void()>> works;
  if (kForksFindMemory) works = {[&] { Do(envs.Step()); }, [] { neuroevo_vector_free(Envs().handle); }};
  const Threads busy(works);
  for (int round = 0; round < Rounds(); ++round) {
    if (kForksFindMemory) lanes.Submit(40);
    InChild([&] {
      const std::string not_ours = " belongs to the process that this one was forked from";
      CheckFails(idle.Step(), "the vector environment" + not_ours);
      CheckFails(envs.Step(), "the vector environment" + not_ours);
      int64_t slot = 0;
      CheckFails(neuroevo_env_render(lanes.pool, &slot, 0, nullptr), "the env pool" + not_ours);
      const neuroevo_results* results = nullptr;
      CheckFails(neuroevo_rollout_results(lanes.rollout, 1, kTime, &results), "the rollout" + not_ours);
      int lanes_ended = 0;
      Do(neuroevo_rollout_close(lanes.rollout));
      Do(neuroevo_rollout_wait_for_end(lanes.rollout, kTime, &lanes_ended));
      CHECK_EQ(lanes_ended, 1);
      Free(&lanes, round);
      neuroevo_vector_free(envs.handle);
      neuroevo_vector_free(idle.handle);
      if (!kForksStartThreads) return;
      CHECK_EQ(neuroevo_get_threads(), 3);
      Envs own;
      for (int step = 0; step < 3; ++step) Do(own.Step());
      neuroevo_vector_free(own.handle);
      Lanes own_lanes;
      own_lanes.Submit(8);
      CHECK_EQ(own_lanes.Results(8).size(), 8);
      Free(&own_lanes, round);
    });
    Do(idle.Step());
  }
  finish();
  CHECK_EQ(ended, lanes.submitted);
  Free(&lanes, 0);
}
