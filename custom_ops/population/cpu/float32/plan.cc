#include "population/cpu/float32/plan.h"

#include <algorithm>
#include <cstring>

#include "core/simd.h"
#include "networks/vbn.h"
#include "population/cpu/walk.h"

namespace neuroevo {

namespace {

// Layers of vbn, bias, ReLU or tanh that are no part of a step, in place on n adjacent values.
void Elementwise(const std::vector<const Layer*>& layers, const float* row, int64_t n, float* values) {
  for (const Layer* layer : layers) {
    const bool by_channel = layer->kind == Layer::Kind::kBias || layer->kind == Layer::Kind::kVbn;
    const int64_t channels = by_channel ? layer->out[2] : n;
    const float *bias = row + layer->offset, *means = row + layer->statistics, *factors = means + layer->out[2];
    for (int64_t first = 0; first < n; first += channels) {
      for (int64_t i = 0; i < channels; i += kLanes) {
        float* place = values + first + i;
        Floats value = Floats::Load(place);
        if (layer->kind == Layer::Kind::kVbn) {
          value = vbn::Normalized(value, Floats::Load(means + i), Floats::Load(factors + i));
        }
        if (layer->kind == Layer::Kind::kBias) value = Add(value, Floats::Load(bias + i));
        if (layer->kind == Layer::Kind::kRelu) value = Relu(value);
        if (layer->kind == Layer::Kind::kTanh) value = Tanh(value);
        value.StorePartial(place, static_cast<int>(std::min<int64_t>(kLanes, channels - i)));
      }
    }
  }
}

struct Scratches {
  WalkMemory<float> walk;
  ConvScratch conv;
  Scratch<int32_t> dense_list;
};

}  // namespace

Epilogue CpuPlan::Step::EpilogueFor(const float* row) const {
  Epilogue epilogue;
  if (vbn != nullptr) {
    epilogue.means = row + vbn->statistics;
    epilogue.factors = epilogue.means + vbn->out[2];
  }
  if (bias != nullptr) epilogue.bias = row + bias->offset;
  epilogue.relu = relu;
  return epilogue;
}

CpuPlan::CpuPlan(DType input_dtype, const std::array<int, 3>& shape, const Layer* begin, const Layer* end)
    : input_dtype_(input_dtype), shape_(shape), outputs_(ValuesOf(begin < end ? end[-1].out : shape)) {
  for (const Layer* layer = begin; layer < end; ++layer) {
    if (layer->kind != Layer::Kind::kConv && layer->kind != Layer::Kind::kDense) {
      (steps_.empty() ? first_ : steps_.back().then).push_back(layer);
      continue;
    }
    const auto take = [&](Layer::Kind kind) { return layer + 1 < end && layer[1].kind == kind ? ++layer : nullptr; };
    // Braces: they are taken in this order.
    steps_.push_back(
        Step{*layer, take(Layer::Kind::kVbn), take(Layer::Kind::kBias), take(Layer::Kind::kRelu) != nullptr, {}});
  }
}

// The layers' part of a walk with one row.
struct CpuPlan::Layers {
  const CpuPlan& plan;
  const float* row;
  int slots;
  const void* const* inputs;
  Scratches* scratches;

  void Load(int s, const Frame& frame, float* out) const {
    const int64_t n = frame.row_values;
    frame.Fill(out, [&](int64_t y, float* place) {
      if (plan.input_dtype_ == DType::kUint8) {
        const uint8_t* bytes = static_cast<const uint8_t*>(inputs[s]) + y * n;
        for (int64_t i = 0; i < n; ++i) place[i] = static_cast<float>(bytes[i]) * (1.0f / 255);
      } else {
        memcpy(place, static_cast<const float*>(inputs[s]) + y * n, n * sizeof(float));
      }
      Elementwise(plan.first_, row, n, place);
    });
  }

  void Convolve(size_t i, int, const Frame& from, const float* in, const Frame& to, float* out) const {
    const Step& step = plan.steps_[i];
    const bool flat = i == 0;  // as observations are; activations hardly ever
    to.ZeroBorder(out);
    CpuConv(step.layer, row + step.layer.offset, step.EpilogueFor(row), in, from.pitch, flat, to.Row(out, 0), to.pitch,
            &scratches->conv);
    for (int64_t y = 0; y < to.height; ++y) Elementwise(step.then, row, to.row_values, to.Row(out, y));
  }

  void Dense(size_t i, const SlotValues<float>& in, const SlotValues<float>& out) const {
    const Step& step = plan.steps_[i];
    const int64_t inputs = ValuesOf(step.layer.in);
    const int units = step.layer.out[2];
    CpuDense(inputs, units, row + step.layer.offset, step.EpilogueFor(row), slots, in.first, in.stride, out.first,
             out.stride, scratches->dense_list.Get(DenseListSize(inputs)));
    for (int s = 0; s < slots; ++s) Elementwise(step.then, row, units, out.Of(s));
  }
};

void CpuPlan::Run(const float* row, int slots, const void* const* inputs, float* const* outs) const {
  thread_local Scratches scratches;
  Layers layers{*this, row, slots, inputs, &scratches};
  const SlotValues<float> values = Walk(shape_, steps_, slots, &scratches.walk, &layers);
  for (int s = 0; s < slots; ++s) memcpy(outs[s], values.Of(s), outputs_ * sizeof(float));
}

}  // namespace neuroevo
