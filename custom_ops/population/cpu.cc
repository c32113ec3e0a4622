// The CPU backend: a plan of steps per network, made once, and its execution for the slots of one task.
//
// Layers before the first dense one run slot by slot, on images padded for their next convolution. From the first dense
// layer on, all slots of the task go through a layer together and share its weight reads. Bias and ReLU are part of the
// convolution or dense layer before them.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/noise.h"
#include "core/simd.h"
#include "population/cpu_kernels.h"
#include "population/host_population.h"

namespace neuroevo {

namespace {

// How an image lies in memory: rows of pitch floats, with a border for the convolution that reads it.
struct Frame {
  int height = 0, width = 0, channels = 0;
  int top = 0, left = 0;  // border before the image
  int rows = 0;           // with borders
  int64_t pitch = 0;
  int64_t size() const { return rows * pitch; }
  int64_t row_values() const { return int64_t{width} * channels; }
  float* Row(float* base, int y) const { return base + (top + y) * pitch + int64_t{left} * channels; }
};

// The frame of a tensor that reader (a convolution, or null) is the next to read.
Frame FrameFor(const std::array<int, 3>& shape, const Layer* reader) {
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

void ZeroBorder(const Frame& frame, float* base) {
  if (frame.rows == frame.height && frame.pitch == frame.row_values()) return;
  const int64_t before = int64_t{frame.left} * frame.channels, after = before + frame.row_values();
  std::fill_n(base, frame.top * frame.pitch, 0.0f);
  for (int y = frame.top; y < frame.top + frame.height; ++y) {
    std::fill_n(base + y * frame.pitch, before, 0.0f);
    std::fill_n(base + y * frame.pitch + after, frame.pitch - after, 0.0f);
  }
  std::fill(base + (frame.top + frame.height) * frame.pitch, base + frame.size(), 0.0f);
}

void LoadInput(const Network& network, const void* observation, const Frame& frame, float* base) {
  ZeroBorder(frame, base);
  const int64_t n = frame.row_values();
  for (int y = 0; y < frame.height; ++y) {
    float* row = frame.Row(base, y);
    if (network.input_dtype() == DType::kUint8) {
      const uint8_t* bytes = static_cast<const uint8_t*>(observation) + y * n;
      for (int64_t i = 0; i < n; ++i) row[i] = static_cast<float>(bytes[i]) * (1.0f / 255);
    } else {
      memcpy(row, static_cast<const float*>(observation) + y * n, n * sizeof(float));
    }
  }
}

// A bias, ReLU or tanh that is no part of another step, in place on n adjacent values.
void Elementwise(const Layer& layer, const float* bias, int64_t n, float* values) {
  const int64_t channels = layer.kind == Layer::Kind::kBias ? layer.out[2] : n;
  for (int64_t first = 0; first < n; first += channels) {
    for (int64_t i = 0; i < channels; i += kLanes) {
      float* place = values + first + i;
      Floats value = Floats::Load(place);
      if (layer.kind == Layer::Kind::kBias) value = Add(value, Floats::Load(bias + i));
      if (layer.kind == Layer::Kind::kRelu) value = Relu(value);
      if (layer.kind == Layer::Kind::kTanh) value = Tanh(value);
      value.StorePartial(place, static_cast<int>(std::min<int64_t>(kLanes, channels - i)));
    }
  }
}

struct Step {
  const Layer* layer;
  const Layer* bias = nullptr;  // fused into a convolution or dense layer
  bool relu = false;            // likewise
  Frame in, out;                // steps on images

  Epilogue EpilogueFor(const float* theta) const { return {bias == nullptr ? nullptr : theta + bias->offset, relu}; }
};

struct Plan {
  Frame input;
  std::vector<Step> image_steps;  // slot by slot
  std::vector<Step> flat_steps;   // all slots together
  int64_t image_floats = 0;       // of the largest frame
  int64_t features = 0;           // values per slot between the two
  int64_t flat_floats = 0;        // per slot, of the widest flat tensor
  int64_t dense_list = 0;         // entries, of the dense layer with most inputs

  explicit Plan(const Network& network);
};

Plan::Plan(const Network& network) {
  const std::vector<Layer>& layers = network.layers();
  const auto reader = [&](size_t from) -> const Layer* {
    for (size_t i = from; i < layers.size() && layers[i].kind != Layer::Kind::kDense; ++i) {
      if (layers[i].kind == Layer::Kind::kConv) return &layers[i];
    }
    return nullptr;
  };
  const auto& shape = layers[0].in;
  input = FrameFor(shape, reader(0));
  image_floats = input.size();
  features = flat_floats = int64_t{1} * shape[0] * shape[1] * shape[2];
  Frame frame = input;
  bool flat = false;
  for (size_t i = 0; i < layers.size(); ++i) {
    Step step;
    step.layer = &layers[i];
    const bool sums = step.layer->kind == Layer::Kind::kConv || step.layer->kind == Layer::Kind::kDense;
    if (sums && i + 1 < layers.size() && layers[i + 1].kind == Layer::Kind::kBias) step.bias = &layers[++i];
    if (sums && i + 1 < layers.size() && layers[i + 1].kind == Layer::Kind::kRelu) {
      step.relu = true;
      ++i;
    }
    const auto& out = step.layer->out;
    const int64_t values = int64_t{1} * out[0] * out[1] * out[2];
    flat = flat || step.layer->kind == Layer::Kind::kDense;
    if (flat) {
      if (step.layer->kind == Layer::Kind::kDense) {
        const auto& in = step.layer->in;
        dense_list = std::max(dense_list, DenseListSize(int64_t{1} * in[0] * in[1] * in[2]));
      }
      flat_steps.push_back(step);
    } else {
      step.in = frame;
      if (step.layer->kind == Layer::Kind::kConv) frame = FrameFor(out, reader(i + 1));
      step.out = frame;
      image_floats = std::max(image_floats, frame.size());
      features = values;
      image_steps.push_back(step);
    }
    flat_floats = std::max(flat_floats, values);
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

struct Scratches {
  Scratch image[2], flat[2];
  ConvScratch conv;
  std::vector<int32_t> dense_list;
};

class CpuPopulation : public HostPopulation {
 public:
  CpuPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool)
      : HostPopulation(std::move(networks), rows, std::move(pool)) {
    static_assert(kMaxSlots <= kMaxDenseSlots && kSlack >= kLanes * 4, "");
    for (const Network& network : networks_) plans_.emplace_back(network);
  }

 private:
  void AddNoiseTo(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out) override {
    AddNoise(seed, begin, count, scale, in, out);
  }

  void Evaluate(int network, const float* theta, int slots, const void* const* observations,
                float* const* outs) override {
    thread_local Scratches scratches;
    const Plan& plan = plans_[network];
    const int64_t stride = (plan.flat_floats + 2 * kLanes - 1) / kLanes * kLanes;
    float* values = scratches.flat[0].Get(stride * slots);
    float* next = scratches.flat[1].Get(stride * slots);
    if (static_cast<int64_t>(scratches.dense_list.size()) < plan.dense_list)
      scratches.dense_list.resize(plan.dense_list);
    for (int s = 0; s < slots; ++s) {
      EvaluateImage(networks_[network], plan, theta, observations[s], values + s * stride, &scratches);
    }
    for (const Step& step : plan.flat_steps) {
      const auto& in = step.layer->in;
      const int64_t inputs = int64_t{1} * in[0] * in[1] * in[2];
      if (step.layer->kind == Layer::Kind::kDense) {
        CpuDense(inputs, step.layer->out[2], theta + step.layer->offset, step.EpilogueFor(theta), slots, values, stride,
                 next, stride, scratches.dense_list.data());
        std::swap(values, next);
      } else {
        for (int s = 0; s < slots; ++s) {
          Elementwise(*step.layer, theta + step.layer->offset, inputs, values + s * stride);
        }
      }
    }
    for (int s = 0; s < slots; ++s) {
      memcpy(outs[s], values + s * stride, networks_[network].output_size() * sizeof(float));
    }
  }

  // The layers before the first dense one; features: their result, without borders.
  static void EvaluateImage(const Network& network, const Plan& plan, const float* theta, const void* observation,
                            float* features, Scratches* scratches) {
    float* values = scratches->image[0].Get(plan.image_floats);
    float* next = scratches->image[1].Get(plan.image_floats);
    LoadInput(network, observation, plan.input, values);
    Frame frame = plan.input;
    for (const Step& step : plan.image_steps) {
      frame = step.out;
      if (step.layer->kind == Layer::Kind::kConv) {
        ZeroBorder(step.out, next);
        CpuConv(*step.layer, theta + step.layer->offset, step.EpilogueFor(theta), values, step.in.pitch,
                step.out.Row(next, 0), step.out.pitch, &scratches->conv);
        std::swap(values, next);
      } else {
        for (int y = 0; y < frame.height; ++y) {
          Elementwise(*step.layer, theta + step.layer->offset, frame.row_values(), frame.Row(values, y));
        }
      }
    }
    // A last frame has no border: no convolution reads it.
    memcpy(features, values, plan.features * sizeof(float));
  }

  std::vector<Plan> plans_;
};

}  // namespace

std::unique_ptr<HostPopulation> MakeCpuPopulation(std::vector<Network> networks, int64_t rows,
                                                  std::shared_ptr<ThreadPool> pool) {
  return std::make_unique<CpuPopulation>(std::move(networks), rows, std::move(pool));
}

}  // namespace neuroevo
