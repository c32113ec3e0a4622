// How much of MuJoCo's speed a pool of its environments keeps: mujoco_bench TASK MODEL SECONDS THREADS SLOTS prints one
// JSON line. First a lane of SLOTS slots for each thread plays random actions, and what it does is recorded: actions,
// ends, and the states after resets. Then slices take turns that do all of it again, from the first reset: the lanes
// (step, reset those that are done, observe; all on one thread pool), and bare MuJoCo (the same library; on each thread
// the simulations of a lane, one after another: mj_step, mj_rnePostConstraint where the task needs it, and after an end
// mj_resetData, the state, mj_forward). Both must arrive at the same states. Rates are medians of the slices in steps
// (frame_skip physics steps each) per second; the ratio is the median of the pairs' ratios.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "envs/env_pool.h"
#include "envs/mujoco_model.h"
#include "envs/mujoco_task.h"

using namespace neuroevo;

namespace {

constexpr double kSliceSeconds = 0.5;

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// What one lane did.
struct Record {
  std::vector<float> actions;               // [steps, slots, num_actions]
  std::vector<std::vector<int64_t>> ended;  // [steps]: slots
  std::vector<std::vector<double>> starts;  // the states after resets, in the order of the resets
  std::vector<double> last;                 // the states at the end
};

class Lane {
 public:
  Lane(const EnvOptions& options, std::shared_ptr<ThreadPool> threads, int lane, int64_t slots)
      : pool_("mujoco", options, slots, std::move(threads)),
        rewards_(slots),
        dones_(std::make_unique<bool[]>(slots)),
        observations_(slots * pool_.spec().observation_shape[0]),
        lane_(lane) {
    for (int64_t slot = 0; slot < slots; ++slot) all_.push_back(slot);
  }

  // Plays for as long as a slice is meant to take.
  void Record() {
    const EnvSpec& spec = pool_.spec();
    std::mt19937 random(lane_);
    const auto start = Clock::now();
    for (Begin(true); Since(start) < kSliceSeconds;) {
      for (int64_t i = 0; i < slots() * spec.num_actions; ++i) {
        const int64_t a = i % spec.num_actions;
        std::uniform_real_distribution<float> between(spec.action_low[a], spec.action_high[a]);
        record_.actions.push_back(between(random));
      }
      Step(static_cast<int64_t>(record_.ended.size()), true);
    }
    record_.last = States(all_);
  }

  void Slice() {
    Begin(false);
    for (int64_t step = 0; step < steps(); ++step) Step(step, false);
  }

  void Check() {
    if (States(all_) != record_.last) throw std::runtime_error("a lane did something else than it had recorded");
  }
  const struct Record& record() const { return record_; }
  const EnvSpec& spec() const { return pool_.spec(); }
  int64_t steps() const { return static_cast<int64_t>(record_.ended.size()); }
  int64_t slots() const { return pool_.slots(); }

 private:
  void Begin(bool recording) {
    episodes_ = 0;
    Reset(all_, recording);
  }

  void Step(int64_t step, bool recording) {
    pool_.Step(all_, &record_.actions[step * slots() * pool_.spec().num_actions], rewards_.data(), dones_.get());
    over_.clear();
    for (int64_t slot : all_) {
      if (dones_[slot]) over_.push_back(slot);
    }
    if (recording) record_.ended.push_back(over_);
    if (!over_.empty()) Reset(over_, recording);
    pool_.Observe(all_, observations_.data());
  }

  void Reset(const std::vector<int64_t>& slots, bool recording) {
    std::vector<uint64_t> seeds;
    for (size_t i = 0; i < slots.size(); ++i) seeds.push_back(++episodes_ * 1000 + lane_);
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
  std::vector<int64_t> all_, over_;
  std::vector<double> rewards_;
  std::unique_ptr<bool[]> dones_;
  std::vector<double> observations_;
  uint64_t lane_, episodes_ = 0;
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
    for (int64_t step = 0; step < lane.steps(); ++step) {
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
    for (int64_t step = 0; step <= lane_.steps(); ++step) {
      if (next != ends_[slot].end() && next->before_step == step) {
        const double* state = record.starts[next++->index].data();
        mj_resetData(&model_, data);
        std::copy_n(state, model_.nq, data->qpos);
        std::copy_n(state + model_.nq, model_.nv, data->qvel);
        mj_forward(&model_, data);
      }
      if (step == lane_.steps()) return;
      std::copy_n(&record.actions[(step * lane_.slots() + slot) * model_.nu], model_.nu, data->ctrl);
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

// Steps per second of a slice of all workers, each on a thread of its own. Each one's own time counts, so that one that
// ends its slice late does not make the others idle.
template <class Worker>
double Measure(const std::vector<std::unique_ptr<Worker>>& workers, const std::vector<int64_t>& steps) {
  std::vector<double> rates(workers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto start = Clock::now();
      workers[i]->Slice();
      rates[i] = static_cast<double>(steps[i]) / Since(start);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& worker : workers) worker->Check();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

void Compare(const std::string& task, const std::string& file, double seconds, int threads, int64_t slots) {
  const auto pool = std::make_shared<ThreadPool>(threads);
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int lane = 0; lane < threads; ++lane) {
    lanes.push_back(std::make_unique<Lane>(EnvOptions{{"task", task}, {"model", file}}, pool, lane, slots));
  }
  std::vector<std::thread> recorders;
  for (auto& lane : lanes) recorders.emplace_back([&lane] { lane->Record(); });
  for (std::thread& recorder : recorders) recorder.join();

  const MujocoModel model = LoadMujocoModel(file);
  const auto& tasks = MujocoTasks();
  const bool contact_forces = std::any_of(tasks.begin(), tasks.end(),
                                          [&](const auto& each) { return task == each.name && each.contact_forces; });
  std::vector<std::unique_ptr<Bare>> bare;
  std::vector<int64_t> steps;
  for (const auto& lane : lanes) {
    bare.push_back(std::make_unique<Bare>(*model, *lane, contact_forces));
    steps.push_back(lane->steps() * slots);
  }

  std::vector<double> bare_rates, pool_rates, ratios;
  for (const auto start = Clock::now(); Since(start) < seconds || ratios.empty();) {
    bare_rates.push_back(Measure(bare, steps));
    pool_rates.push_back(Measure(lanes, steps));
    ratios.push_back(pool_rates.back() / bare_rates.back());
  }
  size_t resets = 0;
  for (const auto& lane : lanes) resets += lane->record().starts.size();
  std::printf(
      "{\"task\": \"%s\", \"mujoco\": \"%s\", \"threads\": %d, \"slots\": %lld, \"pairs\": %zu, \"steps\": %lld, "
      "\"resets\": %zu, \"bare_steps_per_s\": %.0f, \"pool_steps_per_s\": %.0f, \"ratio\": %.3f}\n",
      task.c_str(), mj_versionString(), threads, static_cast<long long>(slots * threads), ratios.size(),
      static_cast<long long>(std::accumulate(steps.begin(), steps.end(), int64_t{0})), resets, Median(bare_rates),
      Median(pool_rates), Median(ratios));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 || std::atof(argv[3]) <= 0 || std::atoi(argv[4]) < 1 || std::atoi(argv[5]) < 1) {
    std::fprintf(stderr, "usage: mujoco_bench TASK MODEL SECONDS THREADS SLOTS\n");
    return 2;
  }
  try {
    Compare(argv[1], argv[2], std::atof(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mujoco_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
