// How much of MuJoCo's speed a pool of its environments keeps: mujoco_bench TASK MODEL THREADS SLOTS STEPS ACTIONS.
//
// First it draws STEPS random actions for each of THREADS * SLOTS environments, writes them into the file ACTIONS
// (float32 [STEPS, THREADS * SLOTS, num_actions], for others to replay), lets a lane of SLOTS slots for each thread
// play them, and notes where episodes end and start. Slots are numbered over all lanes; slot s begins with seed s, and
// after an end at step i with seed s + (i + 1) * 2^20. Then it prints "ready".
//
// For every number of seconds on standard input it measures that long and prints one JSON line. Slices take turns that
// do all of it again: the lanes (step, reset those that are done, observe; all on one thread pool), and bare MuJoCo
// (the same library; on each thread the simulations of a lane, one after another: mj_step, mj_rnePostConstraint where
// the task needs it, and after an end mj_resetData, the state, mj_forward). Both must arrive at the same states. Rates
// are medians of the slices in steps (frame_skip physics steps each) per second; the ratio is the median of the pairs'
// ratios. last_observations: of all slots at the end, their 64-bit words joined by exclusive or.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "envs/env_pool.h"
#include "envs/mujoco/model.h"
#include "envs/mujoco/task.h"

using namespace neuroevo;

namespace {

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// float32 [steps, slots of all lanes, num_actions].
struct Actions {
  int64_t steps, slots, size;
  std::vector<float> values;
  const float* At(int64_t step, int64_t slot) const { return &values[(step * slots + slot) * size]; }
};

Actions DrawActions(const EnvSpec& spec, int64_t steps, int64_t slots) {
  Actions actions{steps, slots, spec.num_actions, {}};
  std::mt19937 random(1);
  for (int64_t i = 0; i < steps * slots * actions.size; ++i) {
    const int64_t a = i % actions.size;
    actions.values.push_back(std::uniform_real_distribution<float>(spec.action_low[a], spec.action_high[a])(random));
  }
  return actions;
}

// What one lane did.
struct Record {
  std::vector<std::vector<int64_t>> ended;  // [steps]: slots of the lane
  std::vector<std::vector<double>> starts;  // the states after resets, in the order of the resets
  std::vector<double> last;                 // the states at the end
};

// Plays the actions of the slots from `first` on.
class Lane {
 public:
  Lane(const EnvOptions& options, std::shared_ptr<ThreadPool> threads, const Actions& actions, int64_t first,
       int64_t slots)
      : pool_("mujoco", options, slots, std::move(threads)),
        actions_(actions),
        first_(first),
        rewards_(slots),
        dones_(std::make_unique<bool[]>(slots)),
        observations_(slots * pool_.spec().observation_shape[0]) {
    for (int64_t slot = 0; slot < slots; ++slot) all_.push_back(slot);
  }

  void Record() {
    Play(true);
    record_.last = States(all_);
  }

  void Slice() { Play(false); }

  void Check() {
    if (States(all_) != record_.last) throw std::runtime_error("a lane did something else than it had recorded");
  }
  const struct Record& record() const { return record_; }
  const Actions& actions() const { return actions_; }
  const EnvSpec& spec() const { return pool_.spec(); }
  const std::vector<double>& observations() const { return observations_; }
  int64_t first() const { return first_; }
  int64_t slots() const { return pool_.slots(); }

 private:
  void Play(bool recording) {
    Reset(all_, 0, recording);
    for (int64_t step = 0; step < actions_.steps; ++step) {
      pool_.Step(all_, actions_.At(step, first_), rewards_.data(), dones_.get());
      over_.clear();
      for (int64_t slot : all_) {
        if (dones_[slot]) over_.push_back(slot);
      }
      if (recording) record_.ended.push_back(over_);
      if (!over_.empty()) Reset(over_, step + 1, recording);
      pool_.Observe(all_, observations_.data());
    }
  }

  void Reset(const std::vector<int64_t>& slots, uint64_t before_step, bool recording) {
    std::vector<uint64_t> seeds;
    for (int64_t slot : slots) seeds.push_back(first_ + slot + (before_step << 20));
    const std::vector<int64_t> no_limit(slots.size(), 0);
    pool_.Reset(slots, seeds, no_limit);
    if (!recording) return;
    for (int64_t slot : slots) record_.starts.push_back(States({slot}));
  }

  std::vector<double> States(const std::vector<int64_t>& slots) {
    std::vector<double> states(slots.size() * pool_.spec().state_size);
    pool_.State(slots, states.data());
    return states;
  }

  EnvPool pool_;
  const Actions& actions_;
  const int64_t first_;
  std::vector<int64_t> all_, over_;
  std::vector<double> rewards_;
  std::unique_ptr<bool[]> dones_;
  std::vector<double> observations_;
  struct Record record_;
};

// The simulations of a lane, without anything around them.
class Bare {
 public:
  Bare(const mjModel& model, const Lane& lane, bool contact_forces)
      : model_(model), lane_(lane), contact_forces_(contact_forces), ends_(lane.slots()) {
    const Record& record = lane.record();
    size_t start = 0;
    for (int64_t slot = 0; slot < lane.slots(); ++slot) {
      data_.push_back(MakeMujocoData(model));
      ends_[slot].push_back({0, start++});
    }
    for (int64_t step = 0; step < lane.actions().steps; ++step) {
      for (int64_t slot : record.ended[step]) ends_[slot].push_back({step + 1, start++});
    }
  }

  void Slice() {
    for (int64_t slot = 0; slot < lane_.slots(); ++slot) Play(slot);
  }

  void Check() {
    const int64_t size = model_.nq + model_.nv;
    for (int64_t slot = 0; slot < lane_.slots(); ++slot) {
      const double* last = &lane_.record().last[slot * size];
      if (!std::equal(last, last + model_.nq, data_[slot]->qpos)) {
        throw std::runtime_error("bare MuJoCo did something else than the lane");
      }
    }
  }

 private:
  struct Start {
    int64_t before_step;
    size_t index;  // in starts
  };

  void Play(int64_t slot) {
    mjData* data = data_[slot].get();
    const Record& record = lane_.record();
    auto next = ends_[slot].begin();
    for (int64_t step = 0; step <= lane_.actions().steps; ++step) {
      if (next != ends_[slot].end() && next->before_step == step) {
        const double* state = record.starts[next++->index].data();
        mj_resetData(&model_, data);
        std::copy_n(state, model_.nq, data->qpos);
        std::copy_n(state + model_.nq, model_.nv, data->qvel);
        mj_forward(&model_, data);
      }
      if (step == lane_.actions().steps) return;
      std::copy_n(lane_.actions().At(step, lane_.first() + slot), model_.nu, data->ctrl);
      for (int64_t i = 0; i < lane_.spec().frame_skip; ++i) mj_step(&model_, data);
      if (contact_forces_) mj_rnePostConstraint(&model_, data);
    }
  }

  const mjModel& model_;
  const Lane& lane_;
  const bool contact_forces_;
  std::vector<MujocoData> data_;
  std::vector<std::vector<Start>> ends_;  // of each slot
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Steps per second of a slice of all workers, each on a separate thread. The time of each worker counts, so that a
// worker that ends its slice late does not make the others idle.
template <class Worker>
double Measure(const std::vector<std::unique_ptr<Worker>>& workers, int64_t steps) {
  std::vector<double> rates(workers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto start = Clock::now();
      workers[i]->Slice();
      rates[i] = static_cast<double>(steps) / Since(start);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& worker : workers) worker->Check();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

class Comparison {
 public:
  Comparison(const std::string& task, const std::string& file, int threads, int64_t slots, int64_t steps)
      : steps_(slots * steps), model_(LoadMujocoModel(file)) {
    const EnvOptions options = {{"task", task}, {"model", file}};
    actions_ = DrawActions(MakeEnvFactory("mujoco", options)->spec(), steps, threads * slots);
    const auto pool = std::make_shared<ThreadPool>(threads);
    const auto& tasks = MujocoTasks();
    const bool contact_forces = std::any_of(tasks.begin(), tasks.end(),
                                            [&](const auto& each) { return task == each.name && each.contact_forces; });
    for (int lane = 0; lane < threads; ++lane) {
      lanes_.push_back(std::make_unique<Lane>(options, pool, actions_, lane * slots, slots));
      lanes_.back()->Record();
      bare_.push_back(std::make_unique<Bare>(*model_, *lanes_.back(), contact_forces));
    }
  }

  void WriteActions(const std::string& file) const {
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(actions_.values.data()), actions_.values.size() * sizeof(float));
    if (!out.flush()) throw std::runtime_error("cannot write " + file);
  }

  void Run(double seconds) {
    std::vector<double> bare_rates, pool_rates, ratios;
    for (const auto start = Clock::now(); Since(start) < seconds || ratios.empty();) {
      bare_rates.push_back(Measure(bare_, steps_));
      pool_rates.push_back(Measure(lanes_, steps_));
      ratios.push_back(pool_rates.back() / bare_rates.back());
    }
    size_t starts = 0;
    uint64_t words = 0;
    for (const auto& lane : lanes_) {
      starts += lane->record().starts.size();
      for (double value : lane->observations()) {
        uint64_t word;
        std::memcpy(&word, &value, sizeof(word));
        words ^= word;
      }
    }
    std::printf(
        "{\"mujoco\": \"%s\", \"pairs\": %zu, \"steps\": %lld, \"episodes\": %zu, \"last_observations\": %llu, "
        "\"bare_steps_per_s\": %.0f, \"pool_steps_per_s\": %.0f, \"ratio\": %.3f}\n",
        mj_versionString(), ratios.size(), static_cast<long long>(steps_ * lanes_.size()), starts,
        static_cast<unsigned long long>(words), Median(bare_rates), Median(pool_rates), Median(ratios));
    std::fflush(stdout);
  }

 private:
  const int64_t steps_;  // of a lane in a slice
  const MujocoModel model_;
  Actions actions_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<Bare>> bare_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7 || std::atoi(argv[3]) < 1 || std::atoi(argv[4]) < 1 || std::atoi(argv[5]) < 1) {
    std::fprintf(stderr, "usage: mujoco_bench TASK MODEL THREADS SLOTS STEPS ACTIONS\n");
    return 2;
  }
  try {
    Comparison comparison(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]));
    comparison.WriteActions(argv[6]);
    std::printf("ready\n");
    std::fflush(stdout);
    for (double seconds; std::cin >> seconds;) comparison.Run(seconds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mujoco_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
