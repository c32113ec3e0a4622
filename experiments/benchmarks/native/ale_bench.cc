// A pool of Atari environments compared with ALE's emulator: ale_bench ROM SECONDS THREADS SLOTS prints one
// JSON line. Slices of a quarter of a second take turns: bare ALE (the same library; one emulator a thread, random
// actions of the minimal set, four frames an action, reset_game at game over) and a lane of SLOTS slots a thread on one
// thread pool (step, reset those that are done, observe). Rates are medians of the slices in emulator frames per
// second; the ratio is the median of the pairs' ratios.
#include <ale/ale_interface.hpp>
#include <ale/common/Log.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "envs/atari/screen.h"
#include "envs/env_pool.h"

using namespace neuroevo;

namespace {

constexpr double kSliceSeconds = 0.25;
constexpr int kFrameSkip = 4;

// Some linkers drop a library of which nothing is used, and with it the registration of the family.
const ScreenToFrame link_atari({}, 1);

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class BareAle {
 public:
  explicit BareAle(const std::string& rom, int thread) : random_(thread) {
    ale_.setInt("random_seed", thread);
    ale_.setFloat("repeat_action_probability", 0);
    ale_.loadROM(rom);
    actions_ = ale_.getMinimalActionSet();
  }

  // Frames played in one slice.
  int64_t Slice() {
    const auto start = Clock::now();
    int64_t frames = 0;
    do {
      for (int step = 0; step < 20; ++step) {
        const ale::Action action = actions_[random_() % actions_.size()];
        for (int i = 0; i < kFrameSkip; ++i) ale_.act(action);
        if (ale_.game_over()) ale_.reset_game();
        frames += kFrameSkip;
      }
    } while (Since(start) < kSliceSeconds);
    return frames;
  }

 private:
  ale::ALEInterface ale_;
  ale::ActionVect actions_;
  std::mt19937 random_;
};

class Lane {
 public:
  Lane(const std::string& rom, std::shared_ptr<ThreadPool> threads, int lane, int64_t slots)
      : pool_("atari", {{"rom", rom}}, slots, std::move(threads)),
        actions_(slots),
        rewards_(slots),
        dones_(std::make_unique<bool[]>(slots)),
        observations_(slots * pool_.spec().observation_bytes()),
        random_(lane) {
    for (int64_t slot = 0; slot < slots; ++slot) all_.push_back(slot);
    Reset(all_);
  }

  int64_t Slice() {
    const auto start = Clock::now();
    int64_t frames = 0;
    do {
      for (int32_t& action : actions_) action = static_cast<int32_t>(random_() % pool_.spec().num_actions);
      pool_.Step(all_, actions_.data(), rewards_.data(), dones_.get());
      std::vector<int64_t> over;
      for (int64_t slot : all_) {
        if (dones_[slot]) over.push_back(slot);
      }
      if (!over.empty()) Reset(over);
      pool_.Observe(all_, observations_.data());
      frames += static_cast<int64_t>(all_.size()) * kFrameSkip;
    } while (Since(start) < kSliceSeconds);
    return frames;
  }

 private:
  void Reset(const std::vector<int64_t>& slots) {
    std::vector<uint64_t> seeds;
    for (size_t i = 0; i < slots.size(); ++i) seeds.push_back(random_());
    const std::vector<int64_t> no_limit(slots.size(), 0);
    pool_.Reset(slots, seeds, no_limit);
  }

  EnvPool pool_;
  std::vector<int64_t> all_;
  std::vector<int32_t> actions_;
  std::vector<double> rewards_;
  std::unique_ptr<bool[]> dones_;
  std::vector<uint8_t> observations_;
  std::mt19937 random_;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Rates {
  double wall, cpu;  // frames per second of wall time, all workers together; frames per second of processor time
};

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// A slice of all workers, each on a separate thread. The wall time of each worker counts, so that a worker that ends
// its slice late does not make the others idle.
template <class Worker>
Rates Measure(const std::vector<std::unique_ptr<Worker>>& workers) {
  std::vector<double> rates(workers.size()), frames(workers.size());
  std::vector<std::thread> threads;
  const double cpu = ProcessorSeconds();
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto start = Clock::now();
      frames[i] = static_cast<double>(workers[i]->Slice());
      rates[i] = frames[i] / Since(start);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {std::accumulate(rates.begin(), rates.end(), 0.0),
          std::accumulate(frames.begin(), frames.end(), 0.0) / (ProcessorSeconds() - cpu)};
}

void Compare(const std::string& rom, double seconds, int threads, int64_t slots) {
  ale::Logger::setMode(ale::Logger::Error);
  std::vector<std::unique_ptr<BareAle>> bare;
  for (int thread = 0; thread < threads; ++thread) bare.push_back(std::make_unique<BareAle>(rom, thread));
  std::vector<std::unique_ptr<Lane>> lanes;
  const auto pool = std::make_shared<ThreadPool>(threads);
  for (int lane = 0; lane < threads; ++lane) lanes.push_back(std::make_unique<Lane>(rom, pool, lane, slots));

  std::vector<double> bare_wall, pool_wall, wall_ratio, bare_cpu, pool_cpu, cpu_ratio;
  for (const auto start = Clock::now(); Since(start) < seconds || wall_ratio.empty();) {
    const Rates a = Measure(bare), b = Measure(lanes);
    bare_wall.push_back(a.wall / threads);
    bare_cpu.push_back(a.cpu);
    pool_wall.push_back(b.wall);
    pool_cpu.push_back(b.cpu);
    wall_ratio.push_back(b.wall / a.wall);
    cpu_ratio.push_back(b.cpu / a.cpu);
  }
  std::printf(
      "{\"rom\": \"%s\", \"threads\": %d, \"pairs\": %zu, \"bare_frames_per_s_per_core\": %.0f, "
      "\"pool_frames_per_s\": %.0f, \"ratio\": %.3f, \"bare_frames_per_cpu_s\": %.0f, \"pool_frames_per_cpu_s\": %.0f, "
      "\"cpu_ratio\": %.3f}\n",
      rom.substr(rom.rfind('/') + 1).c_str(), threads, wall_ratio.size(), Median(bare_wall), Median(pool_wall),
      Median(wall_ratio), Median(bare_cpu), Median(pool_cpu), Median(cpu_ratio));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 || std::atof(argv[2]) <= 0 || std::atoi(argv[3]) < 1 || std::atoi(argv[4]) < 1) {
    std::fprintf(stderr, "usage: ale_bench ROM SECONDS THREADS SLOTS\n");
    return 2;
  }
  try {
    Compare(argv[1], std::atof(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ale_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
