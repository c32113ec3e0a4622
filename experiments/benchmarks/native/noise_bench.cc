// The weighted sum of noise vectors (the gradient of evolution strategies) against making the same noise and nothing
// else, on the same threads: pairs of calls in turns, medians.
//
//   build/native/bench/noise_bench [--json] [--seeds N] [--positions D] [--pairs P] [--threads T]
//
// The noise alone is written chunk by chunk to memory that stays in the L1 cache, which is the fastest way of making
// it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/noise.h"
#include "core/simd.h"
#include "machine.h"
#include "population/noise_sum.h"

using namespace neuroevo;

namespace {

constexpr int64_t kChunk = 4096;  // floats

void MakeNoise(const std::vector<uint64_t>& seeds, int64_t positions, ThreadPool* pool) {
  pool->ParallelFor((positions + kChunk - 1) / kChunk, [&](int64_t task) {
    alignas(64) float noise[kChunk];
    const int64_t begin = task * kChunk, n = std::min(kChunk, positions - begin);
    for (uint64_t seed : seeds) {
      FillNoise(seed, begin, n, noise);
      asm volatile("" : : "r"(noise) : "memory");  // someone might look
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  int64_t seeds = 50, positions = 4052658, pairs = 15;  // LargeModel's D
  int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  const std::pair<const char*, int64_t*> numbers[] = {
      {"--seeds", &seeds}, {"--positions", &positions}, {"--pairs", &pairs}, {"--threads", &threads}};
  for (int i = 1; i < argc; ++i) {
    const auto number = std::find_if(std::begin(numbers), std::end(numbers),
                                     [&](const auto& known) { return strcmp(argv[i], known.first) == 0; });
    if (strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (number != std::end(numbers) && i + 1 < argc && std::atoll(argv[i + 1]) > 0) {
      *number->second = std::atoll(argv[++i]);
    } else {
      std::fprintf(stderr,
                   "argument '%s' is unknown or without a number of at least 1, expected --json, --seeds N, "
                   "--positions D, --pairs P or --threads T\n",
                   argv[i]);
      return 2;
    }
  }
  ThreadPool pool(static_cast<int>(std::min<int64_t>(threads, ThreadPool::kMaxThreads)));
  NoiseTerms terms;
  for (int64_t i = 0; i < seeds; ++i) {
    terms.seeds.push_back(static_cast<uint64_t>(i));
    terms.weights.push_back(static_cast<float>(i) + 0.5f);
  }
  std::vector<float> out(positions);
  std::vector<double> noise_ms, sum_ms, ratios;
  for (int64_t i = 0; i <= pairs; ++i) {
    const double noise = Microseconds([&] { MakeNoise(terms.seeds, positions, &pool); }) * 1e-3;
    const double sum = Microseconds([&] { SumNoise(terms, 0, positions, &pool, out.data()); }) * 1e-3;
    if (i == 0) continue;  // memory is new
    noise_ms.push_back(noise);
    sum_ms.push_back(sum);
    ratios.push_back(sum / noise);
  }
  const double normals = static_cast<double>(seeds) * static_cast<double>(positions);
  std::printf(json ? "{\"float_lanes\": %d, \"threads\": %d, \"seeds\": %lld, \"positions\": %lld, \"noise_ms\": %.4g, "
                     "\"sum_ms\": %.4g, \"ratio\": %.4g, \"normals_a_second\": %.4g}\n"
                   : "vectors of %d floats, %d threads, %lld seeds, %lld positions: noise %.4g ms, sum %.4g ms, sum / "
                     "noise %.3f, %.3g normals a second\n",
              kLanes, pool.threads(), static_cast<long long>(seeds), static_cast<long long>(positions),
              Median(noise_ms), Median(sum_ms), Median(ratios), normals / Median(sum_ms) * 1e3);
  return 0;
}
