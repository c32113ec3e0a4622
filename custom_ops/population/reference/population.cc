// The reference backend: scalar loops that define every result, bit by bit, and are written to be read.
//
// A sum starts at +0 and takes its products in the order of the inputs (of a convolution: row, column, channel of the
// kernel), each by one fused multiply-add. Inputs that are zero and positions outside the image are left out, so the
// weights behind them are not read. Leaving a zero out changes no bit as long as the weight is finite (and no sum has
// underflowed to -0, which adding a zero makes +0); faster paths that do multiply zeros agree on finite weights only.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/noise.h"
#include "networks/activations.h"
#include "networks/layer_norm.h"
#include "networks/vbn.h"
#include "population/host_population.h"

namespace neuroevo {

namespace {

void Conv(const Layer& layer, const float* weights, const float* in, float* out) {
  const auto [height, width, channels] = layer.in;
  const auto [out_height, out_width, filters] = layer.out;
  for (int y = 0; y < out_height; ++y) {
    for (int x = 0; x < out_width; ++x) {
      for (int filter = 0; filter < filters; ++filter) {
        float sum = 0;
        for (int kh = 0; kh < layer.kernel_h; ++kh) {
          for (int kw = 0; kw < layer.kernel_w; ++kw) {
            const int in_y = y * layer.stride + kh - layer.pad_top, in_x = x * layer.stride + kw - layer.pad_left;
            if (in_y < 0 || in_y >= height || in_x < 0 || in_x >= width) continue;
            for (int channel = 0; channel < channels; ++channel) {
              const float value = in[(int64_t{in_y} * width + in_x) * channels + channel];
              const int64_t tap = (int64_t{kh} * layer.kernel_w + kw) * channels + channel;
              if (value != 0) sum = Fma(value, weights[tap * filters + filter], sum);
            }
          }
        }
        out[(int64_t{y} * out_width + x) * filters + filter] = sum;
      }
    }
  }
}

// The greatest value of a window, the first of equal ones; or the sum, in the order of row and column from +0, divided
// by how many there are. Positions outside the image do not count.
void Pool(const Layer& layer, const float* in, float* out) {
  const auto [height, width, channels] = layer.in;
  for (int y = 0; y < layer.out[0]; ++y) {
    for (int x = 0; x < layer.out[1]; ++x) {
      for (int channel = 0; channel < channels; ++channel) {
        float greatest = -std::numeric_limits<float>::infinity(), sum = 0;
        int count = 0;
        for (int kh = 0; kh < layer.kernel_h; ++kh) {
          for (int kw = 0; kw < layer.kernel_w; ++kw) {
            const int in_y = y * layer.stride + kh - layer.pad_top, in_x = x * layer.stride + kw - layer.pad_left;
            if (in_y < 0 || in_y >= height || in_x < 0 || in_x >= width) continue;
            const float value = in[(int64_t{in_y} * width + in_x) * channels + channel];
            greatest = value > greatest ? value : greatest;
            sum = Add(sum, value);
            ++count;
          }
        }
        *out++ = layer.kind == Layer::Kind::kMaxPool ? greatest : Div(sum, static_cast<float>(count));
      }
    }
  }
}

void Dense(int64_t inputs, int units, const float* weights, const float* in, float* out) {
  for (int unit = 0; unit < units; ++unit) {
    float sum = 0;
    for (int64_t i = 0; i < inputs; ++i) {
      if (in[i] != 0) sum = Fma(in[i], weights[i * units + unit], sum);
    }
    out[unit] = sum;
  }
}

// The means and factors of a vbn layer whose inputs are batch; see networks/vbn.h for the order of the sums.
void MeansAndFactors(int channels, const std::vector<std::vector<float>>& batch, float* means, float* factors) {
  const int64_t count = static_cast<int64_t>(batch.size() * batch[0].size() / channels);
  for (int channel = 0; channel < channels; ++channel) {
    double sum = 0, squares = 0;
    for (const std::vector<float>& values : batch) {
      double own = 0;
      for (size_t i = channel; i < values.size(); i += channels) own += vbn::Term(values[i]);
      sum += own;
    }
    means[channel] = vbn::Mean(sum, count);
    for (const std::vector<float>& values : batch) {
      double own = 0;
      for (size_t i = channel; i < values.size(); i += channels) own += vbn::SquareTerm(values[i], means[channel]);
      squares += own;
    }
    factors[channel] = vbn::Factor(squares, count);
  }
}

class ReferencePopulation : public HostPopulation {
 public:
  ReferencePopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool)
      : HostPopulation(std::move(networks), rows, std::move(pool)) {}

 private:
  void AddNoiseTo(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out) override {
    for (int64_t i = 0; i < count; ++i) out[i] = Fma(scale, Noise(seed, begin + i), in == nullptr ? 0.0f : in[i]);
  }

  void Evaluate(int network, const float* row, int slots, const void* const* observations, float* const* states,
                SlotMemory* const*, float* const* outs) override {
    for (int s = 0; s < slots; ++s) {
      EvaluateOne(networks_[network], row, observations[s], states == nullptr ? nullptr : states[s], outs[s]);
    }
  }

  static void EvaluateOne(const Network& network, const float* row, const void* observation, float* state, float* out) {
    std::vector<float> values = Input(network, observation);
    for (const Layer& layer : network.layers()) values = Apply(layer, row, values, state);
    std::copy(values.begin(), values.end(), out);
  }

  void DoPrepare(const std::vector<int64_t>& rows) override {
    pool_->ParallelFor(static_cast<int64_t>(rows.size()), [&](int64_t task) { PrepareOne(rows[task]); });
  }

  // All of the reference batch goes through a layer before the next one.
  void PrepareOne(int64_t row) {
    const Network& network = NetworkOf(row);
    std::vector<std::vector<float>> batch;
    for (int64_t b = 0; b < reference_count_; ++b) batch.push_back(Input(network, ReferenceObservation(b)));
    const Layer* last = nullptr;
    for (const Layer& layer : network.layers()) {
      if (layer.kind == Layer::Kind::kVbn) last = &layer;
    }
    for (const Layer& layer : network.layers()) {
      if (layer.kind == Layer::Kind::kVbn) {
        float* statistics = Row(row) + layer.statistics;
        MeansAndFactors(layer.out[2], batch, statistics, statistics + layer.out[2]);
      }
      // Statistics of layers before the last vbn, which no lstm is among.
      for (std::vector<float>& values : batch) values = Apply(layer, Row(row), values, nullptr);
      if (&layer == last) break;
    }
  }

  static std::vector<float> Input(const Network& network, const void* observation) {
    std::vector<float> values(network.input_size());
    for (int64_t i = 0; i < network.input_size(); ++i) {
      values[i] = network.input_dtype() == DType::kUint8 ? static_cast<const uint8_t*>(observation)[i] * (1.0f / 255)
                                                         : static_cast<const float*>(observation)[i];
    }
    return values;
  }

  // state: of the slot, which a cell changes.
  static std::vector<float> Apply(const Layer& layer, const float* row, const std::vector<float>& values,
                                  float* state) {
    const float *weights = row + layer.offset, *statistics = row + layer.statistics;
    const int channels = layer.out[2];
    std::vector<float> next(ValuesOf(layer.out));
    switch (layer.kind) {
      case Layer::Kind::kConv:
        Conv(layer, weights, values.data(), next.data());
        break;
      case Layer::Kind::kDense:
        Dense(ValuesOf(layer.in), channels, weights, values.data(), next.data());
        break;
      case Layer::Kind::kBias:
        for (size_t i = 0; i < next.size(); ++i) next[i] = values[i] + weights[i % channels];
        break;
      case Layer::Kind::kRelu:
        for (size_t i = 0; i < next.size(); ++i) next[i] = values[i] > 0 ? values[i] : 0;
        break;
      case Layer::Kind::kTanh:
        for (size_t i = 0; i < next.size(); ++i) next[i] = Tanh(values[i]);
        break;
      case Layer::Kind::kVbn:
        for (size_t i = 0; i < next.size(); ++i) {
          next[i] = vbn::Normalized(values[i], statistics[i % channels], statistics[channels + i % channels]);
        }
        break;
      case Layer::Kind::kLeakyRelu:
        for (size_t i = 0; i < next.size(); ++i) next[i] = activations::LeakyRelu(values[i], layer.slope);
        break;
      case Layer::Kind::kSilu:
        for (size_t i = 0; i < next.size(); ++i) next[i] = activations::Silu(values[i]);
        break;
      case Layer::Kind::kGelu:
        for (size_t i = 0; i < next.size(); ++i) next[i] = activations::Gelu(values[i]);
        break;
      case Layer::Kind::kMaxPool:
      case Layer::Kind::kAvgPool:
        Pool(layer, values.data(), next.data());
        break;
      case Layer::Kind::kLayerNorm:
        for (size_t i = 0; i < next.size(); i += channels) layer_norm::Normalize(&values[i], channels, &next[i]);
        break;
      case Layer::Kind::kRecall: {
        const auto joint = std::copy(values.begin(), values.end(), next.begin());
        std::copy_n(state + layer.state, next.size() - values.size(), joint);
        break;
      }
      case Layer::Kind::kCell: {
        float *h = state + layer.state, *c = h + channels;
        for (int u = 0; u < channels; ++u) {
          const float* gates = &values[u];
          activations::Cell(gates[0], gates[channels], gates[2 * channels], gates[3 * channels], &c[u], &h[u]);
        }
        std::copy_n(h, channels, next.begin());
        break;
      }
    }
    return next;
  }
};

}  // namespace

std::unique_ptr<HostPopulation> MakeReferencePopulation(std::vector<Network> networks, int64_t rows,
                                                        std::shared_ptr<ThreadPool> pool) {
  return std::make_unique<ReferencePopulation>(std::move(networks), rows, std::move(pool));
}

}  // namespace neuroevo
