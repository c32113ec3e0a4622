#include "call_times.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "layer_times.h"
#include "machine.h"
#include "population/population.h"

namespace neuroevo {

Times TimeForward(const Network& network, const std::vector<uint8_t>& images, int64_t rows, int repeats) {
  auto population = Population::Make("cpu", {network}, rows, std::make_shared<ThreadPool>(1));
  std::vector<int64_t> all(rows);
  std::iota(all.begin(), all.end(), 0);
  population->Init(all, std::vector<int32_t>(rows, 0), std::vector<uint64_t>(all.begin(), all.end()));
  if (network.has_vbn()) population->SetReference(images.data(), kImages);
  population->Prepare(all);
  std::vector<float> out(kImages * 18);
  std::vector<double> others, same, shared, many;
  const auto forward = [&](std::vector<int64_t> call) {
    const double slots = static_cast<double>(call.size());
    return Microseconds([&] { population->Forward(std::move(call), images.data(), out.data()); }) / slots;
  };
  for (int64_t i = 0; i < repeats; ++i) {
    others.push_back(forward({i % rows}));
    for (int warm = 0; warm < 3; ++warm) forward({3});
    same.push_back(forward({3}));
    std::vector<int64_t> call(kImages);
    for (int64_t k = 0; k < kImages; ++k) call[k] = (i * kImages + k) % rows;
    many.push_back(forward(call));
    shared.push_back(forward(std::vector<int64_t>(kImages, (i + rows / 2) % rows)));
  }
  return {{"1 slot, each call another row", Median(others)},
          {"1 slot, the row in cache", Median(same)},
          {"8 slots of different rows", Median(many)},
          {"8 slots of one row, each call another", Median(shared)}};
}

MakeTimes TimeMaking(const Network& network, int threads, int64_t rows, int repeats) {
  const auto pool = std::make_shared<ThreadPool>(threads);
  auto population = Population::Make("cpu", {network}, rows, pool);
  const int64_t bytes = network.dimension() * sizeof(float), chunk = int64_t{128} << 10;
  Buffer memory(rows * ((bytes + 4095) / 4096 * 4096 + 64));
  const auto row = [&](int64_t r) { return memory.data() + r % rows * (memory.bytes() / rows / 64 * 64); };
  std::vector<double> copy, perturb, init;
  for (int64_t i = 0; i < rows + repeats; ++i) {
    const int64_t from = i % rows, to = (i + rows / 2) % rows;
    const double init_time = Microseconds([&] { population->Init({from}, {0}, {static_cast<uint64_t>(i)}); });
    if (i < rows) continue;  // the first time around, memory is new
    init.push_back(init_time);
    copy.push_back(Microseconds([&] {
      pool->ParallelFor((bytes + chunk - 1) / chunk, [&](int64_t task) {
        const int64_t begin = task * chunk;
        memcpy(row(to) + begin, row(from) + begin, std::min(chunk, bytes - begin));
      });
    }));
    const int64_t src = (i + rows / 4) % rows, dst = (i + 3 * rows / 4) % rows;
    perturb.push_back(Microseconds([&] { population->Perturb({dst}, {src}, {static_cast<uint64_t>(i)}, {0.002f}); }));
  }
  return {Median(copy) * 1e-3, Median(perturb) * 1e-3, Median(init) * 1e-3};
}

PrepareTimes TimePreparing(const Network& network, const std::vector<uint8_t>& images, int threads, int repeats) {
  constexpr int kBatches = 16;  // of kImages, 128 observations
  auto population = Population::Make("cpu", {network}, 2, std::make_shared<ThreadPool>(threads));
  std::vector<uint8_t> batch;
  for (int i = 0; i < kBatches; ++i) batch.insert(batch.end(), images.begin(), images.end());
  population->SetReference(batch.data(), kBatches * kImages);
  population->Init({0}, {0}, {1});
  std::vector<float> out(network.output_size());
  std::vector<double> prepare, forwards;
  for (int i = 0; i < repeats; ++i) {
    population->Perturb({1}, {0}, {static_cast<uint64_t>(i)}, {0.02f});
    prepare.push_back(Microseconds([&] { population->Prepare({1}); }));
    forwards.push_back(Microseconds([&] {
      for (int k = 0; k < kBatches * kImages; ++k) {
        population->Forward({1}, images.data() + k % kImages * kImageBytes, out.data());
      }
    }));
  }
  return {Median(prepare) * 1e-3, Median(forwards) * 1e-3};
}

}  // namespace neuroevo
