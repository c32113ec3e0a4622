#include "population/cpu/float32/plan.h"

#include <algorithm>
#include <cstring>

#include "population/cpu/float32/elementwise.h"
#include "population/cpu/walk.h"

namespace neuroevo {

namespace {

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
    const bool sums = layer->kind == Layer::Kind::kConv || layer->kind == Layer::Kind::kDense;
    if (!sums && !layer->pool() && !Flattens(*layer)) {
      (steps_.empty() ? first_ : steps_.back().then).push_back(layer);
      continue;
    }
    if (!sums) {
      steps_.push_back(Step{*layer, nullptr, nullptr, false, {}});
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
  float* const* states;
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
    if (step.layer.pool()) {
      CpuPool(step.layer, in, from.pitch, to.Row(out, 0), to.pitch);
    } else {
      CpuConv(step.layer, row + step.layer.offset, step.EpilogueFor(row), in, from.pitch, flat, to.Row(out, 0),
              to.pitch, &scratches->conv);
    }
    for (int64_t y = 0; y < to.height; ++y) Elementwise(step.then, row, to.row_values, to.Row(out, y));
  }

  void Dense(size_t i, const SlotValues<float>& in, const SlotValues<float>& out) const {
    const Step& step = plan.steps_[i];
    const int64_t inputs = ValuesOf(step.layer.in);
    const int units = step.layer.out[2];
    if (step.layer.kind == Layer::Kind::kDense) {
      CpuDense(inputs, units, row + step.layer.offset, step.EpilogueFor(row), slots, in.first, in.stride, out.first,
               out.stride, scratches->dense_list.Get(DenseListSize(inputs)));
    } else if (step.layer.kind == Layer::Kind::kRecall) {
      for (int s = 0; s < slots; ++s) {
        float* recalled = std::copy_n(in.Of(s), inputs, out.Of(s));
        std::copy_n(states[s] + step.layer.state, units - inputs, recalled);
      }
    } else {
      for (int s = 0; s < slots; ++s) CpuCell(units, in.Of(s), states[s] + step.layer.state, out.Of(s));
    }
    for (int s = 0; s < slots; ++s) Elementwise(step.then, row, units, out.Of(s));
  }
};

void CpuPlan::Run(const float* row, int slots, const void* const* inputs, float* const* states,
                  float* const* outs) const {
  thread_local Scratches scratches;
  Layers layers{*this, row, slots, inputs, states, &scratches};
  const SlotValues<float> values = Walk(shape_, steps_, slots, &scratches.walk, &layers);
  for (int s = 0; s < slots; ++s) memcpy(outs[s], values.Of(s), outputs_ * sizeof(float));
}

}  // namespace neuroevo
