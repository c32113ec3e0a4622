// Whole rollouts by the lane runner, without TensorFlow: LargeModel on an Atari game, a different genome in every slot,
// compared with the emulators alone on the same cores in the same run.
//
//   build/gpu/bench/gpu_pipeline ROM [--json FILE] [--backend NAME] [--dtypes float32,int8] [--threads 1,2,...]
//                                [--layouts 3x64,32x8,...] [--network TEXT] [--seconds S] [--rounds N]
//
// For each number of threads this process is given as many cores. First, for the most threads, layouts: lanes by slots
// of each, fewer of either for fewer threads, and the same networks on the cores alone, a lane of one slot for each
// thread; then for every number of threads the best layout found, in turns with the emulators alone: the same
// environments in the same lanes, random actions instead of networks. Episodes follow each other as in a GA: each is of
// another offspring of one of 20 parents.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/philox.h"
#include "envs/atari/screen.h"
#include "envs/env_pool.h"
#include "gpu/device.h"
#include "json_lines.h"
#include "machine.h"
#include "rollout/lane_runner.h"

using namespace neuroevo;

namespace {

// Some linkers drop a library of which nothing is used, and with it the registration of the family.
const ScreenToFrame link_atari({}, 1);

constexpr int64_t kParents = 20;
constexpr double kWarmUp = 1.0;  // seconds until every slot has played a while

struct Settings {
  std::string rom, json, backend = NEUROEVO_CUDA_BACKEND;
  std::string network =
      "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
      "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";
  std::vector<std::string> dtypes = {"float32", "int8"};
  std::vector<int64_t> threads = {1, 2, 4, 8, 16};
  std::vector<std::pair<int64_t, int64_t>> layouts = {{3, 64}, {16, 8}, {32, 8}};
  double seconds = 3;
  int rounds = 3;
};

struct Layout {
  int64_t threads, lanes, slots;  // slots of a lane
};

// The cores that this thread, and those that it starts, may run on: the first n of those that it had at first.
void UseCores(int64_t n) {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    return set;
  }();
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&some) < n; ++core) {
    if (CPU_ISSET(core, &all)) CPU_SET(core, &some);
  }
  sched_setaffinity(0, sizeof(some), &some);
}

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Steps a second between the end of the warm-up and the end. steps(): so far.
double Rate(double seconds, const std::function<int64_t()>& steps) {
  Sleep(kWarmUp);
  const int64_t before = steps();
  const double begin = Seconds();
  Sleep(seconds);
  const int64_t after = steps();
  return static_cast<double>(after - before) / (Seconds() - begin);
}

class Pipeline {
 public:
  Pipeline(const Settings& settings, const Layout& layout)
      : settings_(settings),
        layout_((UseCores(layout.threads), layout)),
        pool_(std::make_shared<ThreadPool>(static_cast<int>(layout.threads))),
        envs_("atari", {{"rom", settings.rom}}, layout.lanes * layout.slots, pool_) {}

  double NetworksAndEmulators(DType dtype, const std::string& backend) {
    const int64_t slots = layout_.lanes * layout_.slots;
    const auto population =
        Population::Make(backend, {Network::Parse(settings_.network)}, kParents + slots, pool_, dtype, kParents);
    std::vector<int64_t> parents;
    std::vector<uint64_t> seeds;
    for (int64_t parent = 0; parent < kParents; ++parent) {
      parents.push_back(parent);
      seeds.push_back(static_cast<uint64_t>(parent));
    }
    population->Init(parents, std::vector<int32_t>(kParents, 0), seeds);
    EpisodeQueue queue(layout_.lanes, layout_.slots, kParents);
    std::vector<QueuedEpisode> episodes;
    for (int64_t e = 0; e < 20000; ++e) {
      auto genome = std::make_shared<GenomeRecipe>();
      genome->id = e;
      genome->source_row = e % kParents;
      genome->chain = {{static_cast<uint64_t>(1000 + e), 0.002f}};
      episodes.push_back({e, static_cast<uint64_t>(e), 20000, std::move(genome)});
    }
    queue.Submit(std::move(episodes));
    std::exception_ptr failure;
    std::thread runner([&] {
      try {
        RunLanes(&envs_, population.get(), &queue, 1 << 30);
      } catch (const Error& error) {
        if (error.kind() != Error::Kind::kCancelled) failure = std::current_exception();
      } catch (...) {
        failure = std::current_exception();
      }
    });
    const double rate = Rate(settings_.seconds, [&] { return queue.TotalSteps(); });
    queue.Close();
    runner.join();
    if (failure) std::rethrow_exception(failure);
    return rate;
  }

  double EmulatorsAlone() {
    std::atomic<bool> over{false};
    std::atomic<int64_t> steps{0};
    std::vector<std::thread> lanes;
    for (int64_t lane = 0; lane < layout_.lanes; ++lane) {
      lanes.emplace_back([&, lane] {
        std::vector<int64_t> slots(layout_.slots);
        for (int64_t i = 0; i < layout_.slots; ++i) slots[i] = lane * layout_.slots + i;
        std::vector<char> observations(slots.size() * envs_.spec().observation_bytes());
        std::vector<int32_t> actions(slots.size());
        std::vector<double> rewards(slots.size());
        const auto dones = std::make_unique<bool[]>(slots.size());
        envs_.Reset(slots, std::vector<uint64_t>(slots.begin(), slots.end()),
                    std::vector<int64_t>(slots.size(), 20000));
        for (uint64_t step = 0; !over; ++step) {
          envs_.Observe(slots, observations.data());
          for (size_t i = 0; i < slots.size(); ++i) {
            actions[i] = static_cast<int32_t>(PhiloxWords(slots[i], step).word[0] % envs_.spec().num_actions);
          }
          envs_.Step(slots, actions.data(), rewards.data(), dones.get());
          steps += static_cast<int64_t>(slots.size());
          std::vector<int64_t> ended;
          for (size_t i = 0; i < slots.size(); ++i) {
            if (dones[i]) ended.push_back(slots[i]);
          }
          envs_.Reset(ended, std::vector<uint64_t>(ended.size(), step), std::vector<int64_t>(ended.size(), 20000));
        }
      });
    }
    const double rate = Rate(settings_.seconds, [&] { return steps.load(); });
    over = true;
    for (std::thread& lane : lanes) lane.join();
    return rate;
  }

 private:
  const Settings& settings_;
  Layout layout_;
  std::shared_ptr<ThreadPool> pool_;
  EnvPool envs_;
};

void Run(const Settings& settings) {
  JsonLines lines(settings.json);
  lines.Write(JsonObject()
                  .Add("figure", "pipeline_machine")
                  .Add("device", settings.backend == "cpu" ? "CPU" : device::Name())
                  .Add("cores", std::thread::hardware_concurrency())
                  .Add("rom", settings.rom.substr(settings.rom.rfind('/') + 1)));
  std::printf("%-8s %7s %5s %5s %12s %12s %6s\n", "dtype", "threads", "lanes", "slots", "steps/s", "emulators",
              "ratio");
  const int64_t most = *std::max_element(settings.threads.begin(), settings.threads.end());
  const auto note = [&](const char* figure, const std::string& dtype, const Layout& layout, double rate, double alone) {
    lines.Write(JsonObject()
                    .Add("figure", figure)
                    .Add("dtype", dtype)
                    .Add("threads", layout.threads)
                    .Add("lanes", layout.lanes)
                    .Add("slots", layout.slots)
                    .Add("steps_per_s", rate)
                    .Add("emulator_steps_per_s", alone)
                    .Add("ratio", alone > 0 ? rate / alone : 0));
    std::printf("%-8s %7lld %5lld %5lld %12.0f %12.0f %6.3f\n", dtype.c_str(), static_cast<long long>(layout.threads),
                static_cast<long long>(layout.lanes), static_cast<long long>(layout.slots), rate, alone,
                alone > 0 ? rate / alone : 0);
    std::fflush(stdout);
  };
  for (const std::string& dtype_name : settings.dtypes) {
    const DType dtype = dtype_name == "int8" ? DType::kInt8 : DType::kFloat32;
    Layout best_layout = {most, 1, 1};
    double best = 0;
    for (const auto& [lanes, slots] : settings.layouts) {
      const Layout layout = {most, lanes, slots};
      Pipeline pipeline(settings, layout);
      const double alone = pipeline.EmulatorsAlone(), rate = pipeline.NetworksAndEmulators(dtype, settings.backend);
      note("layout", dtype_name, layout, rate, alone);
      if (rate <= best) continue;
      best = rate;
      best_layout = layout;
    }
    if (settings.backend != "cpu") {
      const Layout layout = {most, most, 1};
      Pipeline pipeline(settings, layout);
      const double alone = pipeline.EmulatorsAlone(), rate = pipeline.NetworksAndEmulators(dtype, "cpu");
      note("cores", dtype_name, layout, rate, alone);
    }
    for (int64_t threads : settings.threads) {
      const auto part = [&](int64_t of_most) { return std::max<int64_t>(1, of_most * threads / most); };
      Layout layout = {threads, best_layout.lanes, best_layout.slots};
      layout.lanes > 4 ? layout.lanes = std::max<int64_t>(2, part(layout.lanes)) : layout.slots = part(layout.slots);
      Pipeline pipeline(settings, layout);
      std::vector<double> rates, alone, ratios;
      for (int round = 0; round < settings.rounds; ++round) {
        alone.push_back(pipeline.EmulatorsAlone());
        rates.push_back(pipeline.NetworksAndEmulators(dtype, settings.backend));
        ratios.push_back(rates.back() / alone.back());
      }
      // The ratio of a round's two neighbors is steadier than that of the medians.
      const double ratio = Median(ratios);
      note("scaling", dtype_name, layout, Median(rates), Median(rates) / ratio);
    }
  }
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

std::vector<int64_t> Numbers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const std::string& part : Split(text)) numbers.push_back(std::atoll(part.c_str()));
  for (int64_t number : numbers) {
    if (number < 1 || number > 1024) ThrowInvalid("'", text, "' holds ", number, ", expected numbers in [1, 1024]");
  }
  if (numbers.empty()) ThrowInvalid("'", text, "' holds no numbers");
  return numbers;
}

Settings Parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (name[0] != '-') {
      settings.rom = name;
      continue;
    }
    ++i;
    if (name == "--json") {
      settings.json = value;
    } else if (name == "--backend") {
      settings.backend = value;
    } else if (name == "--network") {
      settings.network = value;
    } else if (name == "--dtypes") {
      settings.dtypes = Split(value);
    } else if (name == "--threads") {
      settings.threads = Numbers(value);
    } else if (name == "--layouts") {
      settings.layouts.clear();
      for (const std::string& layout : Split(value)) {
        const size_t by = std::min(layout.find('x'), layout.size());
        const std::vector<int64_t> lanes = Numbers(layout.substr(0, by));
        settings.layouts.emplace_back(lanes[0], Numbers(layout.substr(std::min(by + 1, layout.size())))[0]);
      }
    } else if (name == "--seconds") {
      settings.seconds = std::atof(value.c_str());
    } else if (name == "--rounds") {
      settings.rounds = std::max(1, std::atoi(value.c_str()));
    } else {
      ThrowInvalid("argument '", name, "' is unknown; the file's first lines list what is known");
    }
  }
  if (settings.rom.empty()) ThrowInvalid("no ROM is given");
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings settings = Parse(argc, argv);
    if (settings.backend == NEUROEVO_CUDA_BACKEND) device::CheckAvailable();
    Run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_pipeline: %s\n", error.what());
    return 1;
  }
  return 0;
}
