#include "population/cpu/float32/elementwise.h"

#include <algorithm>

#include "core/simd.h"
#include "networks/activations.h"
#include "networks/layer_norm.h"
#include "networks/vbn.h"

namespace neuroevo {

namespace {

// Calls change(value, i) for every vector of values i, i + 1, ... of n.
template <class Change>
void ForVectors(float* values, int64_t n, const Change& change) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const Floats value = change(Floats::Load(values + i), i);
    value.StorePartial(values + i, static_cast<int>(std::min<int64_t>(kLanes, n - i)));
  }
}

void Apply(const Layer& layer, const float* row, int64_t n, float* values) {
  const int channels = layer.out[2];
  const float *bias = row + layer.offset, *means = row + layer.statistics, *factors = means + channels;
  const auto for_positions = [&](const auto& change) {
    for (int64_t first = 0; first < n; first += channels) ForVectors(values + first, channels, change);
  };
  switch (layer.kind) {
    case Layer::Kind::kVbn:
      for_positions([&](Floats value, int64_t i) {
        return vbn::Normalized(value, Floats::Load(means + i), Floats::Load(factors + i));
      });
      break;
    case Layer::Kind::kBias:
      for_positions([&](Floats value, int64_t i) { return Add(value, Floats::Load(bias + i)); });
      break;
    case Layer::Kind::kRelu:
      ForVectors(values, n, [](Floats value, int64_t) { return Relu(value); });
      break;
    case Layer::Kind::kTanh:
      ForVectors(values, n, [](Floats value, int64_t) { return Tanh(value); });
      break;
    case Layer::Kind::kLeakyRelu:
      ForVectors(values, n, [&](Floats value, int64_t) { return activations::LeakyRelu(value, Floats(layer.slope)); });
      break;
    case Layer::Kind::kSilu:
      ForVectors(values, n, [](Floats value, int64_t) { return activations::Silu(value); });
      break;
    case Layer::Kind::kGelu:
      ForVectors(values, n, [](Floats value, int64_t) { return activations::Gelu(value); });
      break;
    case Layer::Kind::kLayerNorm:
      for (float* position = values; position < values + n; position += channels) {
        layer_norm::Normalize(position, channels, position);
      }
      break;
    case Layer::Kind::kConv:
    case Layer::Kind::kDense:
    case Layer::Kind::kMaxPool:
    case Layer::Kind::kAvgPool:
    case Layer::Kind::kRecall:
    case Layer::Kind::kCell:
    case Layer::Kind::kGraph:
      break;  // these are separate steps
  }
}

}  // namespace

void Elementwise(const std::vector<const Layer*>& layers, const float* row, int64_t n, float* values) {
  for (const Layer* layer : layers) Apply(*layer, row, n, values);
}

}  // namespace neuroevo
