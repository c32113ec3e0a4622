// The reference backend: readable scalar loops that define every result bit by bit.
//
// A sum starts at +0 and adds its products in the order of the inputs (for a convolution: row, column, channel of the
// kernel), each by one fused multiply-add. A final -0, which underflowing products can cause, becomes +0. Inputs that
// are zero and positions outside the image are skipped, so their weights are not read. If the weight is finite,
// skipping a zero does not change the result: it can only change the sign of an intermediate sum that is zero, and that
// sign is lost with the next nonzero product or at the end. Faster implementations that do multiply zeros therefore
// agree for finite weights only.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/noise.h"
#include "networks/activations.h"
#include "networks/layer_norm.h"
#include "networks/low_rank.h"
#include "networks/vbn.h"
#include "population/host_population.h"

namespace neuroevo {

namespace {

// Adds the contribution of a member's factors to the sums y of a place; see networks/low_rank.h.
void AddFactors(const Layer& layer, const RowWeights& row, const std::vector<float>& inputs, float* y) {
  if (layer.rank == 0 || row.factor == 0) return;
  const int64_t m = layer.inputs(), n = layer.out[2];
  const float *a = row.own + layer.factors, *b = a + layer.rank * m;
  for (int q = 0; q < layer.rank; ++q) {
    float sums[low_rank::kPartialSums] = {};
    for (int64_t i = 0; i < m; ++i) {
      float& sum = sums[i % low_rank::kPartialSums];
      if (inputs[i] != 0) sum = Fma(inputs[i], a[q * m + i], sum);
    }
    const float t = Mul(row.factor, low_rank::Total(sums));
    for (int64_t j = 0; j < n; ++j) y[j] = Fma(t, b[q * n + j], y[j]);
  }
}

void Conv(const Layer& layer, const RowWeights& row, const float* in, float* out) {
  const float* weights = row.matrices + layer.offset;
  const auto [height, width, channels] = layer.in;
  const auto [out_height, out_width, filters] = layer.out;
  std::vector<float> window(layer.inputs());
  for (int y = 0; y < out_height; ++y) {
    for (int x = 0; x < out_width; ++x) {
      std::fill(window.begin(), window.end(), 0.0f);
      for (int filter = 0; filter < filters; ++filter) {
        float sum = 0;
        for (int kh = 0; kh < layer.kernel_h; ++kh) {
          for (int kw = 0; kw < layer.kernel_w; ++kw) {
            const int in_y = y * layer.stride + kh - layer.pad_top, in_x = x * layer.stride + kw - layer.pad_left;
            if (in_y < 0 || in_y >= height || in_x < 0 || in_x >= width) continue;
            for (int channel = 0; channel < channels; ++channel) {
              const float value = in[(int64_t{in_y} * width + in_x) * channels + channel];
              const int64_t tap = (int64_t{kh} * layer.kernel_w + kw) * channels + channel;
              window[tap] = value;
              if (value != 0) sum = Fma(value, weights[tap * filters + filter], sum);
            }
          }
        }
        out[(int64_t{y} * out_width + x) * filters + filter] = WithoutMinusZero(sum);
      }
      AddFactors(layer, row, window, out + (int64_t{y} * out_width + x) * filters);
    }
  }
}

// Computes the maximum of each window (the first of equal values), or the mean: the sum, starting at +0 and in the
// order of row and column, divided by the number of values. Positions outside the image are ignored.
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

void Dense(const Layer& layer, const RowWeights& row, const std::vector<float>& in, float* out) {
  const float* weights = row.matrices + layer.offset;
  const int units = layer.out[2];
  for (int unit = 0; unit < units; ++unit) {
    float sum = 0;
    for (int64_t i = 0; i < layer.inputs(); ++i) {
      if (in[i] != 0) sum = Fma(in[i], weights[i * units + unit], sum);
    }
    out[unit] = WithoutMinusZero(sum);
  }
  AddFactors(layer, row, in, out);
}

void Graph(const Layer& layer, const float* weights, const std::vector<float>& in, float* out) {
  const float* biases = weights + layer.edges.size();
  const int outputs = layer.out[2];
  std::vector<float> nodes = in;
  size_t next = 0;
  for (int unit = 0; unit < layer.units; ++unit) {
    float sum = biases[unit];
    for (; next < layer.edges.size() && layer.edges[next].to == static_cast<int>(nodes.size()); ++next) {
      sum = Fma(weights[next], nodes[layer.edges[next].from], sum);
    }
    nodes.push_back(unit < layer.units - outputs ? Tanh(sum) : sum);
  }
  std::copy(nodes.end() - outputs, nodes.end(), out);
}

// Computes the means and factors of a vbn layer with inputs `batch`; see networks/vbn.h for the order of the sums.
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
  ReferencePopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank,
                      int64_t float_rows)
      : HostPopulation(std::move(networks), rows, std::move(pool), rank, float_rows) {}

 private:
  void AddNoiseTo(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out,
                  const float* spread) override {
    for (int64_t i = 0; i < count; ++i) {
      const float own_scale = spread == nullptr ? scale : Mul(scale, spread[i]);
      out[i] = Fma(own_scale, Noise(seed, begin + i), in == nullptr ? 0.0f : in[i]);
    }
  }

  void Evaluate(int network, bool members, const RowWeights* weights, int slots, const void* const* observations,
                float* const* states, SlotMemory* const*, float* const* outs) override {
    for (int s = 0; s < slots; ++s) {
      std::vector<float> values = Input(networks_[network], observations[s]);
      float* state = states == nullptr ? nullptr : states[s];
      for (const Layer& layer : LayersOf(network, members)) values = Apply(layer, weights[s], values, state);
      std::copy(values.begin(), values.end(), outs[s]);
    }
  }

  void DoPrepare(const std::vector<int64_t>& rows) override {
    pool_->ParallelFor(static_cast<int64_t>(rows.size()), [&](int64_t task) { PrepareOne(rows[task]); });
  }

  // Propagates the whole reference batch through one layer before the next.
  void PrepareOne(int64_t row) {
    const Network& network = NetworkOf(row);
    const std::vector<Layer>& layers = LayersOf(row_network_[row], members_.Is(row));
    std::vector<std::vector<float>> batch;
    for (int64_t b = 0; b < reference_count_; ++b) batch.push_back(Input(network, ReferenceObservation(b)));
    const Layer* last = nullptr;
    for (const Layer& layer : layers) {
      if (layer.kind == Layer::Kind::kVbn) last = &layer;
    }
    for (const Layer& layer : layers) {
      if (layer.kind == Layer::Kind::kVbn) {
        float* statistics = Row(row) + layer.statistics;
        MeansAndFactors(layer.out[2], batch, statistics, statistics + layer.out[2]);
      }
      // No state is needed: no lstm precedes the last vbn layer.
      for (std::vector<float>& values : batch) values = Apply(layer, WeightsOf(row), values, nullptr);
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

  // state: state of the slot, updated by a cell.
  static std::vector<float> Apply(const Layer& layer, const RowWeights& row, const std::vector<float>& values,
                                  float* state) {
    const float *weights = row.own + layer.offset, *statistics = row.own + layer.statistics;
    const int channels = layer.out[2];
    std::vector<float> next(ValuesOf(layer.out));
    switch (layer.kind) {
      case Layer::Kind::kConv:
        Conv(layer, row, values.data(), next.data());
        break;
      case Layer::Kind::kDense:
        Dense(layer, row, values, next.data());
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
      case Layer::Kind::kGraph:
        Graph(layer, weights, values, next.data());
        break;
    }
    return next;
  }
};

}  // namespace

std::unique_ptr<HostPopulation> MakeReferencePopulation(std::vector<Network> networks, int64_t rows,
                                                        std::shared_ptr<ThreadPool> pool, int rank,
                                                        int64_t float_rows) {
  return std::make_unique<ReferencePopulation>(std::move(networks), rows, std::move(pool), rank, float_rows);
}

}  // namespace neuroevo
