#include "call_times.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "layer_times.h"
#include "machine.h"
#include "population/population.h"

namespace neuroevo {

namespace {

// Forward calls of some kinds, each kind measured in every round.
class Forwards {
 public:
  Forwards(const Network& network, DType dtype, const std::vector<uint8_t>& images, int64_t rows)
      : images_(images), rows_(rows), out_(kImages * 18) {
    const int64_t float_rows = dtype == DType::kFloat32 ? -1 : 1;
    population_ = Population::Make("cpu", {network}, rows, std::make_shared<ThreadPool>(1), dtype, float_rows);
    std::vector<int64_t> all(rows);
    std::iota(all.begin(), all.end(), 0);
    population_->Init(all, std::vector<int32_t>(rows, 0), std::vector<uint64_t>(all.begin(), all.end()));
    if (network.has_vbn()) population_->SetReference(images.data(), kImages);
    population_->Prepare(all);
  }

  void Round(int64_t i) {
    others_.push_back(Forward({i % rows_}));
    for (int warm = 0; warm < 3; ++warm) Forward({3});
    same_.push_back(Forward({3}));
    std::vector<int64_t> call(kImages);
    for (int64_t k = 0; k < kImages; ++k) call[k] = (i * kImages + k) % rows_;
    many_.push_back(Forward(call));
    shared_.push_back(Forward(std::vector<int64_t>(kImages, (i + rows_ / 2) % rows_)));
  }

  Times Medians(const std::string& dtype) const {
    return {{dtype + ", 1 slot, each call another row", Median(others_)},
            {dtype + ", 1 slot, the row in cache", Median(same_)},
            {dtype + ", 8 slots of different rows", Median(many_)},
            {dtype + ", 8 slots of one row, each call another", Median(shared_)}};
  }

 private:
  double Forward(std::vector<int64_t> call) {
    const double slots = static_cast<double>(call.size());
    return Microseconds([&] { population_->Forward(std::move(call), images_.data(), out_.data()); }) / slots;
  }

  const std::vector<uint8_t>& images_;
  int64_t rows_;
  std::unique_ptr<Population> population_;
  std::vector<float> out_;
  std::vector<double> others_, same_, shared_, many_;
};

}  // namespace

Times TimeForward(const Network& network, const std::vector<uint8_t>& images, int64_t rows, int repeats) {
  Forwards floats(network, DType::kFloat32, images, rows);
  std::unique_ptr<Forwards> bytes;
  if (!network.has_vbn()) bytes = std::make_unique<Forwards>(network, DType::kInt8, images, rows);
  for (int64_t i = 0; i < repeats; ++i) {
    floats.Round(i);
    if (bytes != nullptr) bytes->Round(i);
  }
  Times times = floats.Medians("float32");
  if (bytes == nullptr) return times;
  for (const auto& time : bytes->Medians("int8")) times.push_back(time);
  return times;
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
