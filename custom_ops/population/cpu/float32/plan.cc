#include "population/cpu/float32/plan.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/simd.h"
#include "networks/vbn.h"

namespace neuroevo {

namespace {

int64_t Size(const std::array<int, 3>& shape) { return int64_t{1} * shape[0] * shape[1] * shape[2]; }

// A vbn, bias, ReLU or tanh that is no part of another step, in place on n adjacent values.
void Elementwise(const Layer& layer, const float* row, int64_t n, float* values) {
  const bool by_channel = layer.kind == Layer::Kind::kBias || layer.kind == Layer::Kind::kVbn;
  const int64_t channels = by_channel ? layer.out[2] : n;
  const float *bias = row + layer.offset, *means = row + layer.statistics, *factors = means + layer.out[2];
  for (int64_t first = 0; first < n; first += channels) {
    for (int64_t i = 0; i < channels; i += kLanes) {
      float* place = values + first + i;
      Floats value = Floats::Load(place);
      if (layer.kind == Layer::Kind::kVbn) {
        value = vbn::Normalized(value, Floats::Load(means + i), Floats::Load(factors + i));
      }
      if (layer.kind == Layer::Kind::kBias) value = Add(value, Floats::Load(bias + i));
      if (layer.kind == Layer::Kind::kRelu) value = Relu(value);
      if (layer.kind == Layer::Kind::kTanh) value = Tanh(value);
      value.StorePartial(place, static_cast<int>(std::min<int64_t>(kLanes, channels - i)));
    }
  }
}

// A thread's memory for activations. It grows to the largest network and stays.
class Scratch {
 public:
  // n floats, aligned to cache lines, with slack for a vector's overrun.
  float* Get(int64_t n) {
    const size_t needed = static_cast<size_t>(n) + 32;
    if (memory_.size() < needed) {
      memory_.clear();  // nothing to be copied over
      memory_.resize(needed);
    }
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (64 - address % 64) % 64 / sizeof(float);
  }

 private:
  std::vector<float> memory_;
};

}  // namespace

struct CpuPlan::Scratches {
  Scratch image[2], flat[2];
  ConvScratch conv;
  std::vector<int32_t> dense_list;
};

// The frame of a tensor that reader (a convolution, or null) is the next to read.
CpuPlan::Frame CpuPlan::FrameFor(const std::array<int, 3>& shape, const Layer* reader) {
  Frame frame;
  frame.height = shape[0];
  frame.width = shape[1];
  frame.channels = shape[2];
  frame.rows = frame.height;
  int columns = frame.width;
  if (reader != nullptr) {
    frame.top = reader->pad_top;
    frame.left = reader->pad_left;
    frame.rows = std::max(frame.top + frame.height, (reader->out[0] - 1) * reader->stride + reader->kernel_h);
    columns = std::max(frame.left + frame.width, (reader->out[1] - 1) * reader->stride + reader->kernel_w);
  }
  frame.pitch = int64_t{columns} * frame.channels;
  return frame;
}

void CpuPlan::ZeroBorder(const Frame& frame, float* base) {
  if (frame.rows == frame.height && frame.pitch == frame.row_values()) return;
  const int64_t before = int64_t{frame.left} * frame.channels, after = before + frame.row_values();
  std::fill_n(base, frame.top * frame.pitch, 0.0f);
  for (int y = frame.top; y < frame.top + frame.height; ++y) {
    std::fill_n(base + y * frame.pitch, before, 0.0f);
    std::fill_n(base + y * frame.pitch + after, frame.pitch - after, 0.0f);
  }
  std::fill(base + (frame.top + frame.height) * frame.pitch, base + frame.size(), 0.0f);
}

void CpuPlan::LoadInput(const void* input, float* base) const {
  ZeroBorder(input_, base);
  const int64_t n = input_.row_values();
  for (int y = 0; y < input_.height; ++y) {
    float* row = input_.Row(base, y);
    if (input_dtype_ == DType::kUint8) {
      const uint8_t* bytes = static_cast<const uint8_t*>(input) + y * n;
      for (int64_t i = 0; i < n; ++i) row[i] = static_cast<float>(bytes[i]) * (1.0f / 255);
    } else {
      memcpy(row, static_cast<const float*>(input) + y * n, n * sizeof(float));
    }
  }
}

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
    : input_dtype_(input_dtype) {
  const auto reader = [&](const Layer* from) -> const Layer* {
    for (const Layer* layer = from; layer < end && layer->kind != Layer::Kind::kDense; ++layer) {
      if (layer->kind == Layer::Kind::kConv) return layer;
    }
    return nullptr;
  };
  input_ = FrameFor(shape, reader(begin));
  image_floats_ = input_.size();
  features_ = flat_floats_ = outputs_ = Size(shape);
  Frame frame = input_;
  bool flat = false;
  for (const Layer* layer = begin; layer < end; ++layer) {
    Step step;
    step.layer = layer;
    if (layer->kind == Layer::Kind::kConv || layer->kind == Layer::Kind::kDense) {
      const auto take = [&](Layer::Kind kind) { return layer + 1 < end && layer[1].kind == kind ? ++layer : nullptr; };
      step.vbn = take(Layer::Kind::kVbn);
      step.bias = take(Layer::Kind::kBias);
      step.relu = take(Layer::Kind::kRelu) != nullptr;
    }
    outputs_ = Size(step.layer->out);
    flat = flat || step.layer->kind == Layer::Kind::kDense;
    if (flat) {
      if (step.layer->kind == Layer::Kind::kDense) {
        dense_list_ = std::max(dense_list_, DenseListSize(Size(step.layer->in)));
      }
      flat_steps_.push_back(step);
    } else {
      step.in = frame;
      if (step.layer->kind == Layer::Kind::kConv) frame = FrameFor(step.layer->out, reader(layer + 1));
      step.out = frame;
      image_floats_ = std::max(image_floats_, frame.size());
      features_ = outputs_;
      image_steps_.push_back(step);
    }
    flat_floats_ = std::max(flat_floats_, outputs_);
  }
}

void CpuPlan::Run(const float* row, int slots, const void* const* inputs, float* const* outs) const {
  thread_local Scratches scratches;
  const int64_t stride = (flat_floats_ + 2 * kLanes - 1) / kLanes * kLanes;
  float* values = scratches.flat[0].Get(stride * slots);
  float* next = scratches.flat[1].Get(stride * slots);
  if (static_cast<int64_t>(scratches.dense_list.size()) < dense_list_) scratches.dense_list.resize(dense_list_);
  for (int s = 0; s < slots; ++s) RunImage(row, inputs[s], values + s * stride, &scratches);
  for (const Step& step : flat_steps_) {
    const int64_t in = Size(step.layer->in);
    if (step.layer->kind == Layer::Kind::kDense) {
      CpuDense(in, step.layer->out[2], row + step.layer->offset, step.EpilogueFor(row), slots, values, stride, next,
               stride, scratches.dense_list.data());
      std::swap(values, next);
    } else {
      for (int s = 0; s < slots; ++s) Elementwise(*step.layer, row, in, values + s * stride);
    }
  }
  for (int s = 0; s < slots; ++s) memcpy(outs[s], values + s * stride, outputs_ * sizeof(float));
}

// The layers before the first dense one; features: their result, without borders.
void CpuPlan::RunImage(const float* row, const void* input, float* features, Scratches* scratches) const {
  float* values = scratches->image[0].Get(image_floats_);
  float* next = scratches->image[1].Get(image_floats_);
  LoadInput(input, values);
  Frame frame = input_;
  bool flat = true;  // as observations are; activations hardly ever
  for (const Step& step : image_steps_) {
    frame = step.out;
    if (step.layer->kind == Layer::Kind::kConv) {
      ZeroBorder(step.out, next);
      CpuConv(*step.layer, row + step.layer->offset, step.EpilogueFor(row), values, step.in.pitch, flat,
              step.out.Row(next, 0), step.out.pitch, &scratches->conv);
      flat = false;
      std::swap(values, next);
    } else {
      for (int y = 0; y < frame.height; ++y) Elementwise(*step.layer, row, frame.row_values(), frame.Row(values, y));
    }
  }
  // A last frame has no border: no convolution reads it.
  memcpy(features, values, features_ * sizeof(float));
}

}  // namespace neuroevo
