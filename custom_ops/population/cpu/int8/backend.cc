// The CPU backend of integer networks: a plan of frames per network, and its execution for the slots of one task.
//
// Convolutions run slot by slot, on images padded for them. From the first dense layer on, all slots of the task go
// through a layer together and share its weight reads.
#include "population/int8/backend.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "networks/int8/rules.h"
#include "population/cpu/int8/kernels.h"
#include "population/row_memory.h"

namespace neuroevo {

namespace {

// How an image of bytes lies in memory: rows of pitch bytes, with a border for the convolution that reads it.
struct Frame {
  int top = 0, left = 0;  // border before the image
  int64_t rows = 0;       // with borders
  int64_t pitch = 0;
  int64_t height = 0, row_bytes = 0;  // of the image
  int64_t size() const { return rows * pitch; }

  // The frame of a tensor that `reader`, a convolution or dense layer, is to read.
  explicit Frame(const Layer& reader) {
    const auto& [h, w, c] = reader.in;
    int64_t columns = w;
    rows = height = h;
    row_bytes = int64_t{w} * c;
    if (reader.kind == Layer::Kind::kConv) {
      top = reader.pad_top;
      left = reader.pad_left * c;
      rows = std::max<int64_t>(top + h, (int64_t{reader.out[0]} - 1) * reader.stride + reader.kernel_h);
      columns = std::max<int64_t>(reader.pad_left + w, (int64_t{reader.out[1]} - 1) * reader.stride + reader.kernel_w);
    }
    pitch = columns * c;
  }

  // write(y, place) fills row y of the image; the border becomes zero.
  template <class F>
  void Fill(uint8_t* base, F write) const {
    memset(base, 0, top * pitch);
    for (int64_t y = 0; y < height; ++y) {
      uint8_t* row = base + (top + y) * pitch;
      memset(row, 0, left);
      write(y, row + left);
      memset(row + left + row_bytes, 0, pitch - left - row_bytes);
    }
    memset(base + (top + height) * pitch, 0, (rows - top - height) * pitch);
  }
};

// A thread's memory. It grows to the largest network and stays.
class Scratch {
 public:
  // `bytes`, aligned to cache lines, with slack for a vector's overrun.
  uint8_t* Get(int64_t bytes) {
    const size_t needed = static_cast<size_t>(bytes + 64 + RowMemory::kSlack);
    if (memory_.size() < needed) {
      memory_.clear();  // nothing to be copied over
      memory_.resize(needed);
    }
    return memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64) % 64;
  }
  int32_t* GetInts(int64_t n) { return reinterpret_cast<int32_t*>(Get(n * static_cast<int64_t>(sizeof(int32_t)))); }

 private:
  std::vector<uint8_t> memory_;
};

struct Scratches {
  Scratch image[2], flat[2], sums, bias, dense;
};

int32_t Largest(const int32_t* sums, int64_t n) {
  int32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, sums[i]);
  return largest;
}

// int8::Activation of n sums, with arithmetic of 32 bits: sums stay below 2^31 and half a unit is at most 2^22.
void Activations(const int32_t* sums, int64_t n, int shift, uint8_t* out) {
  const uint32_t below_half = shift == 0 ? 0 : (1u << (shift - 1)) - 1, odd = shift == 0 ? 0 : 1;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t sum = static_cast<uint32_t>(std::max(sums[i], 0));
    out[i] = static_cast<uint8_t>((sum + below_half + (sum >> shift & odd)) >> shift);
  }
}

int64_t Values(const std::array<int, 3>& shape) { return int64_t{1} * shape[0] * shape[1] * shape[2]; }

class CpuBackend : public Int8Backend {
 public:
  int64_t ConvBytes(const Layer& layer) const override { return Int8ConvBytes(layer); }
  void ArrangeConv(const Layer& layer, const int8_t* plain, int8_t* arranged) const override {
    ArrangeInt8Conv(layer, plain, arranged);
  }

  void Evaluate(const Int8Network& network, const char* row, int slots, const void* const* observations,
                float* const* outs) const override {
    static_assert(kMaxSlots <= kMaxInt8DenseSlots, "");
    thread_local Scratches scratches;
    const std::vector<Int8Step>& steps = network.steps;
    size_t first_dense = 0;
    while (first_dense < steps.size() && !steps[first_dense].dense()) ++first_dense;

    // Images: what comes out is the last convolution's outputs, or the input of the first dense layer.
    int64_t stride = 0;
    for (size_t i = first_dense; i < steps.size(); ++i) stride = std::max(stride, steps[i].inputs);
    stride = (stride + 63) / 64 * 64;
    uint8_t* values = scratches.flat[0].Get(stride * slots);
    uint8_t* next = scratches.flat[1].Get(stride * slots);
    int exponents[kMaxSlots];
    for (int s = 0; s < slots; ++s) {
      exponents[s] = EvaluateImage(network, first_dense, row, static_cast<const uint8_t*>(observations[s]),
                                   values + s * stride, outs[s], &scratches);
    }

    for (size_t i = first_dense; i < steps.size(); ++i) {
      const Int8Step& step = steps[i];
      const int64_t sums_stride = Int8DenseStride(step.outputs);
      int32_t* sums = scratches.sums.GetInts(sums_stride * slots);
      Int8Dense(step.inputs, step.outputs, Weights(step, row), slots, values, stride, sums, sums_stride,
                scratches.dense.Get(Int8DenseScratchBytes(step.inputs, slots)));
      for (int s = 0; s < slots; ++s) {
        int32_t* own = sums + s * sums_stride;
        exponents[s] += Exponent(row, i);
        const int32_t* bias = Bias(step, row, exponents[s], &scratches);
        for (int64_t u = 0; u < step.outputs; ++u) own[u] += bias[u];
        if (i + 1 == steps.size()) {
          Outputs(network, own, step.outputs, exponents[s], outs[s]);
        } else {
          const int32_t largest = Largest(own, step.outputs);
          const int shift = int8::ActivationShift(largest);
          exponents[s] = int8::ActivationExponent(largest, exponents[s], shift);
          Activations(own, step.outputs, shift, next + s * stride);
        }
      }
      std::swap(values, next);
    }
  }

 private:
  static const int8_t* Weights(const Int8Step& step, const char* row) {
    return reinterpret_cast<const int8_t*>(row + step.weights_place);
  }
  static int Exponent(const char* row, size_t step) { return reinterpret_cast<const int32_t*>(row)[step]; }

  static const int32_t* Bias(const Int8Step& step, const char* row, int exponent, Scratches* scratches) {
    int32_t* bias = scratches->bias.GetInts(step.outputs);
    const float* values = reinterpret_cast<const float*>(row + step.bias_place);
    for (int64_t i = 0; i < step.outputs; ++i) bias[i] = step.has_bias ? int8::QuantizedBias(values[i], exponent) : 0;
    return bias;
  }

  static void Outputs(const Int8Network& network, const int32_t* sums, int64_t n, int exponent, float* out) {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = int8::Output(network.relu_at_the_end ? std::max(sums[i], 0) : sums[i], exponent);
    }
  }

  // The steps before first_dense. Writes the values that step first_dense reads and returns their exponent, or, if
  // there is none, the network's outputs.
  static int EvaluateImage(const Int8Network& network, size_t first_dense, const char* row, const uint8_t* observation,
                           uint8_t* values, float* out, Scratches* scratches) {
    const std::vector<Int8Step>& steps = network.steps;
    Frame frame(steps[0].layer);
    int exponent = 0;
    uint8_t* in = first_dense == 0 ? values : scratches->image[0].Get(frame.size());
    frame.Fill(in,
               [&](int64_t y, uint8_t* place) { memcpy(place, observation + y * frame.row_bytes, frame.row_bytes); });
    for (size_t i = 0; i < first_dense; ++i) {
      const Int8Step& step = steps[i];
      const int64_t n = Values(step.layer.out);
      int32_t* sums = scratches->sums.GetInts(n);
      exponent += Exponent(row, i);
      Int8Conv(step.layer, Weights(step, row), Bias(step, row, exponent, scratches), in, frame.pitch, sums);
      if (i + 1 == steps.size()) {
        Outputs(network, sums, n, exponent, out);
        break;
      }
      const int32_t largest = Largest(sums, n);
      const int shift = int8::ActivationShift(largest);
      exponent = int8::ActivationExponent(largest, exponent, shift);
      frame = Frame(steps[i + 1].layer);
      in = i + 1 == first_dense ? values : scratches->image[(i + 1) % 2].Get(frame.size());
      frame.Fill(in, [&](int64_t y, uint8_t* place) {
        Activations(sums + y * frame.row_bytes, frame.row_bytes, shift, place);
      });
    }
    return exponent;
  }
};

}  // namespace

std::unique_ptr<Int8Backend> MakeInt8CpuBackend() { return std::make_unique<CpuBackend>(); }

}  // namespace neuroevo
