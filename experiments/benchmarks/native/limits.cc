// The machine's limits on one core and on all cores at once: arithmetic, reading from each cache and from memory,
// copying. Prints one JSON object of medians.
//
//   build/native/bench/limits [milliseconds a figure, 200 if not given]
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/simd.h"
#include "machine.h"

using namespace neuroevo;

namespace {

struct Figure {
  std::string name;
  double value;
};

// The sum over the threads of each thread's median of slice(thread), all running for that time.
double Together(int threads, double seconds, const std::function<double(int)>& slice) {
  std::vector<double> medians(threads);
  std::vector<std::thread> workers;
  std::atomic<int> waiting{threads};
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      std::vector<double> rates;
      for (const double end = Seconds() + seconds; Seconds() < end || rates.size() < 3;) rates.push_back(slice(t));
      medians[t] = Median(rates);
    });
  }
  double sum = 0;
  for (int t = 0; t < threads; ++t) {
    workers[t].join();
    sum += medians[t];
  }
  return sum;
}

std::vector<Figure> Measure(int threads, double seconds) {
  const Caches caches = CacheSizes();
  std::vector<Figure> figures;
  figures.push_back({"fma_gflops", Together(threads, seconds, [](int) { return FmaRate(); })});
  figures.push_back({"int8_gops", Together(threads, seconds, [](int) { return Int8Rate(); })});
  const int64_t memory = std::max(int64_t{256} << 20, 8 * caches.l3) / threads / 64 * 64;
  std::vector<std::unique_ptr<Buffer>> from, to;
  for (int t = 0; t < threads; ++t) {
    from.push_back(std::make_unique<Buffer>(memory));
    to.push_back(std::make_unique<Buffer>(memory));
  }
  const auto read = [&](const char* name, int64_t bytes) {
    const int64_t slice = std::min<int64_t>(bytes, 8 << 20);
    const int times = static_cast<int>(std::max<int64_t>(1, (8 << 20) / bytes));
    double best = 0;
    for (int64_t ahead : kAheads) {
      std::vector<int64_t> at(threads, 0);
      best = std::max(best, Together(threads, seconds / 4, [&](int t) {
                        if (at[t] + slice > bytes) at[t] = 0;
                        at[t] += slice;
                        return ReadRate(*from[t], at[t] - slice, slice, times, ahead);
                      }));
    }
    figures.push_back({name, best});
  };
  read("read_l1_gb_s", caches.l1 / 2);
  read("read_l2_gb_s", caches.l2 / 2);
  read("read_l3_gb_s", std::max(caches.l2, std::min(memory, caches.l3 / 4 / threads)));
  read("read_memory_gb_s", memory);
  std::vector<int64_t> at(threads, 0);
  const int64_t slice = 16 << 20;
  figures.push_back({"copy_memory_gb_s", Together(threads, seconds, [&](int t) {
                       if (at[t] + slice > memory) at[t] = 0;
                       at[t] += slice;
                       return CopyRate(*from[t], *to[t], at[t] - slice, slice);
                     })});
  return figures;
}

std::string Json(const std::vector<Figure>& figures) {
  std::string text = "{";
  for (const Figure& figure : figures) {
    char value[32];
    std::snprintf(value, sizeof(value), "%.4g", figure.value);
    text += (text.size() > 1 ? ", \"" : "\"") + figure.name + "\": " + value;
  }
  return text + "}";
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = (argc > 1 ? std::atof(argv[1]) : 200) * 1e-3;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::string one = Json(Measure(1, seconds)), all = Json(Measure(cores, seconds));
  std::printf("{\"cores\": %d, \"float_lanes\": %d, \"one_core\": %s, \"all_cores\": %s}\n", cores, kLanes, one.c_str(),
              all.c_str());
  return 0;
}
