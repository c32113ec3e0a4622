// The CPU backend: networks as plans (float32/plan.h), and the statistics of their vbn layers.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/noise.h"
#include "core/simd.h"
#include "networks/vbn.h"
#include "population/cpu/float32/plan.h"
#include "population/cpu/scratch.h"
#include "population/host_population.h"

namespace neuroevo {

namespace {

// A vbn layer, and the way from the one before it (or the input) to what it normalizes.
struct Stage {
  const Layer* vbn;
  CpuPlan plan;

  int channels() const { return vbn->out[2]; }
};

std::vector<Stage> StagesOf(const Network& network) {
  std::vector<Stage> stages;
  const Layer *begin = network.layers().data(), *end = begin + network.layers().size();
  DType dtype = network.input_dtype();
  for (const Layer* layer = begin; layer < end; ++layer) {
    if (layer->kind != Layer::Kind::kVbn) continue;
    stages.push_back({layer, CpuPlan(dtype, begin->in, begin, layer)});
    begin = layer;
    dtype = DType::kFloat32;
  }
  return stages;
}

// sums[c] = the sum of term(value, c) over an observation's values of channel c, for kChannels channels from `first`
// on. A constant number of them, so that the sums stay in registers.
template <int kChannels, class Term>
void SumChannels(const float* values, int64_t size, int channels, int first, const Term& term, double* sums) {
  double own[kChannels] = {};
  for (const float *at = values + first, *end = values + size; at < end; at += channels) {
#pragma GCC unroll 16
    for (int c = 0; c < kChannels; ++c) own[c] += term(at[c], first + c);
  }
  std::copy_n(own, kChannels, sums + first);
}

template <class Term>
void Sum(const float* values, int64_t size, int channels, const Term& term, double* sums) {
  int first = 0;
  for (; first + 16 <= channels; first += 16) SumChannels<16>(values, size, channels, first, term, sums);
  for (; first < channels; ++first) SumChannels<1>(values, size, channels, first, term, sums);
}

// out[c] = result(the sum of the observations' sums of channel c).
template <class Result>
void Total(const std::vector<double>& sums, int channels, const Result& result, float* out) {
  std::vector<double> total(channels, 0.0);
  for (size_t first = 0; first < sums.size(); first += channels) {
    for (int c = 0; c < channels; ++c) total[c] += sums[first + c];
  }
  for (int c = 0; c < channels; ++c) out[c] = result(total[c]);
}

class CpuPopulation : public HostPopulation {
 public:
  CpuPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool)
      : HostPopulation(std::move(networks), rows, std::move(pool)) {
    static_assert(kMaxSlots <= kMaxDenseSlots && kSlack >= kLanes * 4, "");
    for (const Network& network : networks_) {
      const std::vector<Layer>& layers = network.layers();
      plans_.emplace_back(network.input_dtype(), layers[0].in, layers.data(), layers.data() + layers.size());
      stages_.push_back(StagesOf(network));
    }
  }

 private:
  void AddNoiseTo(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out) override {
    AddNoise(seed, begin, count, scale, in, out);
  }

  std::unique_ptr<SlotMemory> MakeSlotMemory() const override {
    const bool convolve =
        std::any_of(plans_.begin(), plans_.end(), [](const CpuPlan& plan) { return plan.convolves(); });
    return convolve ? std::make_unique<Float32Memory>() : nullptr;
  }

  void Evaluate(int network, const float* row, int slots, const void* const* observations, float* const* states,
                SlotMemory* const* memories, float* const* outs) override {
    Float32Memory* own[kMaxSlots];
    for (int s = 0; s < slots; ++s) own[s] = static_cast<Float32Memory*>(memories[s]);
    plans_[network].Run(row, slots, observations, states, own, outs);
  }

  void DoPrepare(const std::vector<int64_t>& rows) override {
    for (int64_t row : rows) PrepareOne(stages_[row_network_[row]], Row(row));
  }

  // The reference batch goes from one vbn layer to the next, several observations in a task.
  void PrepareOne(const std::vector<Stage>& stages, float* row) {
    const int64_t count = reference_count_, threads = pool_->threads();
    const int64_t most = std::min<int64_t>(kMaxSlots, (count + threads - 1) / threads);
    const auto for_blocks = [&](const auto& body) {  // of observations [first, first + slots)
      pool_->ParallelFor((count + most - 1) / most, [&](int64_t task) {
        body(task * most, static_cast<int>(std::min(most, count - task * most)));
      });
    };
    int64_t pitch = 0;
    for (const Stage& stage : stages) pitch = std::max(pitch, stage.plan.outputs());
    thread_local Scratch<float> memory;              // of this thread, not of the tasks'
    float* const batch = memory.Get(count * pitch);  // of each observation, what the stage has made
    for (const Stage& stage : stages) {
      const int channels = stage.channels();
      const int64_t size = stage.plan.outputs(), values = count * (size / channels);
      float *means = row + stage.vbn->statistics, *factors = means + channels;
      std::vector<double> sums(count * channels);
      for_blocks([&](int64_t first, int slots) {
        const void* inputs[kMaxSlots] = {};
        float* outs[kMaxSlots] = {};
        for (int s = 0; s < slots; ++s) {
          outs[s] = batch + (first + s) * pitch;
          inputs[s] = &stage == &stages[0] ? static_cast<const void*>(ReferenceObservation(first + s)) : outs[s];
        }
        stage.plan.Run(row, slots, inputs, nullptr, nullptr, outs);
        for (int s = 0; s < slots; ++s) {
          Sum(outs[s], size, channels, [](float x, int) { return vbn::Term(x); }, &sums[(first + s) * channels]);
        }
      });
      Total(sums, channels, [&](double sum) { return vbn::Mean(sum, values); }, means);
      for_blocks([&](int64_t first, int slots) {
        for (int64_t b = first; b < first + slots; ++b) {
          Sum(
              batch + b * pitch, size, channels, [&](float x, int c) { return vbn::SquareTerm(x, means[c]); },
              &sums[b * channels]);
        }
      });
      Total(sums, channels, [&](double squares) { return vbn::Factor(squares, values); }, factors);
    }
  }

  std::vector<CpuPlan> plans_;
  std::vector<std::vector<Stage>> stages_;
};

}  // namespace

std::unique_ptr<HostPopulation> MakeCpuPopulation(std::vector<Network> networks, int64_t rows,
                                                  std::shared_ptr<ThreadPool> pool) {
  return std::make_unique<CpuPopulation>(std::move(networks), rows, std::move(pool));
}

}  // namespace neuroevo
