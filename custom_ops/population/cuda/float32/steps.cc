// Fusion of a network's layers into steps of the GPU.
#include "core/error.h"
#include "population/cuda/float32/network.h"

namespace neuroevo::cuda {

namespace {

bool BiasFits(const Step& step) { return step.bias < 0 && step.activation == Activation::kNone; }

bool VbnFits(const Step& step) { return step.vbn < 0 && BiasFits(step); }

Step::Kind KindOf(const Layer& layer) {
  switch (layer.kind) {
    case Layer::Kind::kConv:
      return Step::Kind::kConv;
    case Layer::Kind::kDense:
      return Step::Kind::kDense;
    case Layer::Kind::kMaxPool:
    case Layer::Kind::kAvgPool:
      return Step::Kind::kPool;
    case Layer::Kind::kLayerNorm:
      return Step::Kind::kLayerNorm;
    case Layer::Kind::kRecall:
      return Step::Kind::kRecall;
    case Layer::Kind::kCell:
      return Step::Kind::kCell;
    default:
      return Step::Kind::kNeither;
  }
}

// Returns whether a vbn, bias or activation can become part of the last step.
bool Follows(const std::vector<Step>& steps) {
  return !steps.empty() && (steps.back().kind == Step::Kind::kConv || steps.back().kind == Step::Kind::kDense ||
                            steps.back().kind == Step::Kind::kNeither);
}

}  // namespace

std::vector<Step> StepsOf(DType input, const std::vector<Layer>& layers) {
  std::vector<Step> steps;
  for (const Layer& layer : layers) {
    Step alone;
    alone.kind = KindOf(layer);
    alone.layer = layer;
    const bool reads_bytes = alone.kind == Step::Kind::kConv || alone.kind == Step::Kind::kNeither;
    if (steps.empty() && !reads_bytes && input == DType::kUint8) {
      Step floats;
      floats.kind = Step::Kind::kNeither;
      floats.layer.in = floats.layer.out = layer.in;
      steps.push_back(floats);
    }
    switch (layer.kind) {
      case Layer::Kind::kConv:
      case Layer::Kind::kDense:
      case Layer::Kind::kMaxPool:
      case Layer::Kind::kAvgPool:
      case Layer::Kind::kLayerNorm:
      case Layer::Kind::kRecall:
      case Layer::Kind::kCell:
        steps.push_back(alone);
        break;
      case Layer::Kind::kBias:
        if (!Follows(steps) || !BiasFits(steps.back())) steps.push_back(alone);
        steps.back().bias = layer.offset;
        break;
      case Layer::Kind::kVbn:
        if (!Follows(steps) || !VbnFits(steps.back())) steps.push_back(alone);
        steps.back().vbn = layer.statistics;
        break;
      case Layer::Kind::kRelu:
      case Layer::Kind::kTanh:
        if (!Follows(steps) || steps.back().activation != Activation::kNone) steps.push_back(alone);
        steps.back().activation = layer.kind == Layer::Kind::kRelu ? Activation::kRelu : Activation::kTanh;
        break;
      case Layer::Kind::kLeakyRelu:
      case Layer::Kind::kSilu:
      case Layer::Kind::kGelu:
        steps.push_back(alone);
        steps.back().activation = layer.kind == Layer::Kind::kLeakyRelu ? Activation::kLeakyRelu
                                  : layer.kind == Layer::Kind::kSilu    ? Activation::kSilu
                                                                        : Activation::kGelu;
        break;
      case Layer::Kind::kGraph:
        ThrowInvalid("a network has a graph layer, which the GPU does not support; use the backend 'cpu'");
    }
  }
  return steps;
}

}  // namespace neuroevo::cuda
