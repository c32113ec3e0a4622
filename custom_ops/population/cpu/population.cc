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

// A vbn layer, and the plan of the layers from the previous vbn layer (or the input) to its input.
struct Stage {
  const Layer* vbn;
  CpuPlan plan;

  int channels() const { return vbn->out[2]; }
};

std::vector<Stage> StagesOf(const Network& network, const std::vector<Layer>& layers) {
  std::vector<Stage> stages;
  const Layer *begin = layers.data(), *end = begin + layers.size();
  DType dtype = network.input_dtype();
  for (const Layer* layer = begin; layer < end; ++layer) {
    if (layer->kind != Layer::Kind::kVbn) continue;
    stages.push_back({layer, CpuPlan(dtype, begin->in, begin, layer)});
    begin = layer;
    dtype = DType::kFloat32;
  }
  return stages;
}

// sums[c] = the sum of term(value, c) over an observation's values of channel c, for kChannels channels starting at
// `first`. The number of channels is a constant so that the sums stay in registers.
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

// out[c] = result(total of the observations' sums of channel c).
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
  CpuPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank,
                int64_t float_rows)
      : HostPopulation(std::move(networks), rows, std::move(pool), rank, float_rows) {
    static_assert(kMaxSlots <= kMaxDenseSlots && kSlack >= kLanes * 4, "");
    for (bool members : {false, true}) {
      if (members && members_.count() == 0) continue;
      for (size_t n = 0; n < networks_.size(); ++n) {
        ways_[members].push_back(WayOf(static_cast<int>(n), members));
        convolve_ = convolve_ || ways_[members].back()->plan.convolves();
      }
    }
  }

 private:
  // Plans of a whole network and of the stages up to its vbn layers.
  struct Way {
    CpuPlan plan;
    std::vector<Stage> stages;
  };

  std::unique_ptr<Way> WayOf(int network, bool members) const {
    const std::vector<Layer>& layers = LayersOf(network, members);
    const Layer *begin = layers.data(), *end = begin + layers.size();
    const CpuPlan plan(networks_[network].input_dtype(), begin->in, begin, end);
    return std::unique_ptr<Way>(new Way{plan, StagesOf(networks_[network], layers)});
  }

  void DoReplace(int32_t index) override { ways_[0][index] = WayOf(index, false); }

  void AddNoiseTo(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out,
                  const float* spread) override {
    AddNoise(seed, begin, count, scale, in, out, spread);
  }

  std::unique_ptr<SlotMemory> MakeSlotMemory() const override {
    return convolve_ ? std::make_unique<Float32Memory>() : nullptr;
  }

  void Evaluate(int network, bool members, const RowWeights* weights, int slots, const void* const* observations,
                float* const* states, SlotMemory* const* memories, float* const* outs) override {
    Float32Memory* own[kMaxSlots];
    for (int s = 0; s < slots; ++s) own[s] = static_cast<Float32Memory*>(memories[s]);
    ways_[members][network]->plan.Run(weights, slots, observations, states, own, outs);
  }

  void DoPrepare(const std::vector<int64_t>& rows) override {
    for (int64_t row : rows) PrepareOne(ways_[members_.Is(row)][row_network_[row]]->stages, row);
  }

  // Propagates the reference batch from one vbn layer to the next, with several observations per task.
  void PrepareOne(const std::vector<Stage>& stages, int64_t row) {
    RowWeights weights[kMaxSlots];
    std::fill_n(weights, kMaxSlots, WeightsOf(row));
    const int64_t count = reference_count_, threads = pool_->threads();
    const int64_t most = std::min<int64_t>(kMaxSlots, (count + threads - 1) / threads);
    const auto for_blocks = [&](const auto& body) {  // calls body(first, slots) for blocks of observations
      pool_->ParallelFor((count + most - 1) / most, [&](int64_t task) {
        body(task * most, static_cast<int>(std::min(most, count - task * most)));
      });
    };
    int64_t pitch = 0;
    for (const Stage& stage : stages) pitch = std::max(pitch, stage.plan.outputs());
    thread_local Scratch<float> memory;              // owned by the calling thread, shared by all tasks
    float* const batch = memory.Get(count * pitch);  // output of the stage for each observation
    for (const Stage& stage : stages) {
      const int channels = stage.channels();
      const int64_t size = stage.plan.outputs(), values = count * (size / channels);
      float *means = Row(row) + stage.vbn->statistics, *factors = means + channels;
      std::vector<double> sums(count * channels);
      for_blocks([&](int64_t first, int slots) {
        const void* inputs[kMaxSlots] = {};
        float* outs[kMaxSlots] = {};
        for (int s = 0; s < slots; ++s) {
          outs[s] = batch + (first + s) * pitch;
          inputs[s] = &stage == &stages[0] ? static_cast<const void*>(ReferenceObservation(first + s)) : outs[s];
        }
        stage.plan.Run(weights, slots, inputs, nullptr, nullptr, outs);
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

  // Per network, [0] for rows that hold weights and [1] for members.
  std::vector<std::unique_ptr<Way>> ways_[2];
  bool convolve_ = false;  // whether any of the initial networks has convolutions
};

}  // namespace

std::unique_ptr<HostPopulation> MakeCpuPopulation(std::vector<Network> networks, int64_t rows,
                                                  std::shared_ptr<ThreadPool> pool, int rank, int64_t float_rows) {
  return std::make_unique<CpuPopulation>(std::move(networks), rows, std::move(pool), rank, float_rows);
}

}  // namespace neuroevo
