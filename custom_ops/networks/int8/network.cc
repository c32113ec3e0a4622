#include "networks/int8/network.h"

#include "core/error.h"
#include "networks/int8/rules.h"

namespace neuroevo {

Int8Network::Int8Network(const Network& network, int64_t index) {
  const std::vector<Layer>& layers = network.layers();
  // Layers count from 1 as in Network::Parse: the input is 0.
  const auto refuse = [&](size_t layer, const auto&... reason) {
    ThrowInvalid("network ", index, " cannot be evaluated as int8: layer ", layer, " '",
                 layer == 0 ? "input" : NameOf(layers[layer - 1].kind), "' ", reason...);
  };
  if (network.input_dtype() != DType::kUint8) {
    refuse(0, "is ", neuroevo::NameOf(network.input_dtype()), ", expected uint8");
  }
  for (size_t i = 0; i < layers.size();) {
    Int8Step step;
    step.layer = layers[i];
    switch (step.layer.kind) {
      case Layer::Kind::kConv:
      case Layer::Kind::kDense:
      case Layer::Kind::kBias:
      case Layer::Kind::kRelu:
        break;
      case Layer::Kind::kTanh:
      case Layer::Kind::kLeakyRelu:
      case Layer::Kind::kSilu:
      case Layer::Kind::kGelu:
        refuse(i + 1, "is not supported, expected relu");
        break;
      case Layer::Kind::kMaxPool:
        refuse(i + 1, "has no integer version, expected a network without it");
        break;
      default:
        refuse(i + 1, "is not supported, expected a network without it");
    }
    if (!step.dense() && step.layer.kind != Layer::Kind::kConv) {
      refuse(i + 1, "does not follow a conv or dense layer, each with at most one bias and then one relu");
    }
    if (!steps.empty() && !relu_at_the_end) refuse(i + 1, "needs a relu between it and the layer before it");
    step.outputs = step.layer.out[2];
    step.inputs = step.layer.weights / step.outputs;
    if (step.inputs > int8::kMaxInputs) {
      refuse(i + 1, "sums ", step.inputs, " products, expected at most ", int8::kMaxInputs,
             " so that they fit 32 bits");
    }
    if (static_cast<int>(steps.size()) == int8::kMaxLayers) {
      refuse(i + 1, "exceeds the limit of ", int8::kMaxLayers, " conv and dense layers");
    }
    ++i;
    if (i < layers.size() && layers[i].kind == Layer::Kind::kBias) {
      step.has_bias = true;
      step.bias = layers[i++];
    }
    relu_at_the_end = i < layers.size() && layers[i].kind == Layer::Kind::kRelu;
    if (relu_at_the_end) ++i;
    steps.push_back(step);
  }
}

void Int8Network::Place(const std::vector<int64_t>& weights) {
  const auto aligned = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  row_bytes = aligned(static_cast<int64_t>(steps.size() * sizeof(int32_t)));
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].bias_place = row_bytes;
    if (steps[i].has_bias) row_bytes += aligned(steps[i].outputs * static_cast<int64_t>(sizeof(float)));
    steps[i].weights_place = row_bytes;
    row_bytes += aligned(weights[i]);
  }
}

}  // namespace neuroevo
