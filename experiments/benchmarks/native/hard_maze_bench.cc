// How fast the hard maze is, and how much of that a pool of its environments keeps: hard_maze_bench MAP SECONDS THREADS
// SLOTS prints a JSON line for each kind of observation. Slices take turns: one environment, on this thread; and a pool
// of SLOTS of them on THREADS threads. Both step with random actions, observe after each step, and begin a new episode
// where one is over. Rates are medians of the slices, in steps per second; the pool's per thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "envs/env_pool.h"
#include "envs/hard_maze/robot.h"

using namespace neuroevo;

namespace {

// Some linkers drop a library of which nothing is used, and with it the registration of the family.
[[maybe_unused]] const Direction link_hard_maze = DirectionOf(0);

constexpr double kSliceSeconds = 0.2;
constexpr int64_t kSteps = 1000;  // between two readings of the clock
constexpr int64_t kActions = 1 << 16;

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<float> RandomActions() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> actions(kActions);
  for (float& action : actions) action = between(random);
  return actions;
}

// Steps per second of calls that make `steps` steps each.
template <class Body>
double Rate(int64_t steps, Body body) {
  int64_t done = 0;
  const auto start = Clock::now();
  do {
    body();
    done += steps;
  } while (Since(start) < kSliceSeconds);
  return static_cast<double>(done) / Since(start);
}

class Alone {
 public:
  explicit Alone(const EnvOptions& options)
      : factory_(MakeEnvFactory("hard_maze", options)),
        env_(factory_->Make()),
        observation_(factory_->spec().observation_bytes()) {
    env_->Reset(0, 0);
  }

  double Slice(const std::vector<float>& actions) {
    return Rate(kSteps, [&] {
      for (int64_t step = 0; step < kSteps; ++step) {
        if (env_->Step(&actions[at_]).done) env_->Reset(0, 0);
        env_->Observe(observation_.data());
        at_ = (at_ + 2) % kActions;
      }
    });
  }

 private:
  std::unique_ptr<EnvFactory> factory_;
  std::unique_ptr<Env> env_;
  std::vector<uint8_t> observation_;
  int64_t at_ = 0;
};

class Together {
 public:
  Together(const EnvOptions& options, int threads, int64_t slots)
      : pool_("hard_maze", options, slots, std::make_shared<ThreadPool>(threads)),
        rewards_(slots),
        dones_(std::make_unique<bool[]>(slots)),
        observations_(slots * pool_.spec().observation_bytes()) {
    for (int64_t slot = 0; slot < slots; ++slot) all_.push_back(slot);
    Reset(all_);
  }

  double Slice(const std::vector<float>& actions) {
    const int64_t slots = pool_.slots(), calls = (kSteps + slots - 1) / slots;
    return Rate(calls * slots, [&] {
      for (int64_t call = 0; call < calls; ++call) {
        if (at_ + 2 * slots > kActions) at_ = 0;
        pool_.Step(all_, &actions[at_], rewards_.data(), dones_.get());
        at_ += 2 * slots;
        std::vector<int64_t> over;
        for (int64_t slot : all_) {
          if (dones_[slot]) over.push_back(slot);
        }
        if (!over.empty()) Reset(over);
        pool_.Observe(all_, observations_.data());
      }
    });
  }

 private:
  void Reset(const std::vector<int64_t>& slots) {
    pool_.Reset(slots, std::vector<uint64_t>(slots.size(), 0), std::vector<int64_t>(slots.size(), 0));
  }

  EnvPool pool_;
  std::vector<int64_t> all_;
  std::vector<double> rewards_;
  std::unique_ptr<bool[]> dones_;
  std::vector<uint8_t> observations_;
  int64_t at_ = 0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Measure(const std::string& map, double seconds, int threads, int64_t slots) {
  const std::vector<float> actions = RandomActions();
  for (const char* observation : {"sensors", "image"}) {
    const EnvOptions options = {{"map", map}, {"observation", observation}};
    Alone alone(options);
    Together together(options, threads, slots);
    std::vector<double> one, many;
    for (const auto start = Clock::now(); Since(start) < seconds / 2 || one.empty();) {
      one.push_back(alone.Slice(actions));
      many.push_back(together.Slice(actions) / threads);
    }
    std::printf(
        "{\"observation\": \"%s\", \"threads\": %d, \"slots\": %lld, \"slices\": %zu, \"steps_per_s\": %.0f, "
        "\"pool_steps_per_s_per_thread\": %.0f}\n",
        observation, threads, static_cast<long long>(slots), one.size(), Median(one), Median(many));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 || std::atof(argv[2]) <= 0 || std::atoi(argv[3]) < 1 || std::atoi(argv[4]) < 1 ||
      std::atoi(argv[4]) > kActions / 2) {
    std::fprintf(stderr, "usage: hard_maze_bench MAP SECONDS THREADS SLOTS\n");
    return 2;
  }
  try {
    Measure(argv[1], std::atof(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hard_maze_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
