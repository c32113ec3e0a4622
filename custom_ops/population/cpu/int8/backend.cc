// The CPU backend of integer networks: what their layers do on a walk (cpu/walk.h).
#include "population/int8/backend.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "networks/int8/rules.h"
#include "population/cpu/int8/kernels.h"
#include "population/cpu/walk.h"

namespace neuroevo {

namespace {

struct Scratches {
  WalkMemory<uint8_t> walk;
  Scratch<int32_t> sums, bias;
  Scratch<uint8_t> dense;
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

// The layers' part of a walk with one row.
struct Layers {
  const Int8Network& network;
  const char* row;
  int slots;
  const void* const* observations;
  float* const* outs;
  Scratches* scratches;
  int exponents[Int8Backend::kMaxSlots] = {};  // of each slot's activations

  void Load(int s, const Frame& frame, uint8_t* out) const {
    const uint8_t* observation = static_cast<const uint8_t*>(observations[s]);
    frame.Fill(out,
               [&](int64_t y, uint8_t* place) { memcpy(place, observation + y * frame.row_values, frame.row_values); });
  }

  void Convolve(size_t i, int s, const Frame& from, const uint8_t* in, const Frame& to, uint8_t* out) {
    const Int8Step& step = network.steps[i];
    int32_t* sums = scratches->sums.Get(ValuesOf(step.layer.out));
    Int8Conv(step.layer, Weights(step), Rescale(i, s), in, from.pitch, sums);
    Finish(i, s, sums, [&](int shift) {
      to.Fill(out,
              [&](int64_t y, uint8_t* place) { Activations(sums + y * to.row_values, to.row_values, shift, place); });
    });
  }

  void Dense(size_t i, const SlotValues<uint8_t>& in, const SlotValues<uint8_t>& out) {
    const Int8Step& step = network.steps[i];
    const int64_t stride = Int8DenseStride(step.outputs);
    int32_t* sums = scratches->sums.Get(stride * slots);
    Int8Dense(step.inputs, step.outputs, Weights(step), slots, in.first, in.stride, sums, stride,
              scratches->dense.Get(Int8DenseScratchBytes(step.inputs, slots)));
    for (int s = 0; s < slots; ++s) {
      int32_t* own = sums + s * stride;
      const int32_t* bias = Rescale(i, s);
      for (int64_t u = 0; u < step.outputs; ++u) own[u] += bias[u];
      Finish(i, s, own, [&](int shift) { Activations(own, step.outputs, shift, out.Of(s)); });
    }
  }

  const int8_t* Weights(const Int8Step& step) const {
    return reinterpret_cast<const int8_t*>(row + step.weights_place);
  }

  // Takes slot s to the scale of step i's sums; returns the biases at that scale.
  const int32_t* Rescale(size_t i, int s) {
    const Int8Step& step = network.steps[i];
    const int exponent = exponents[s] += reinterpret_cast<const int32_t*>(row)[i];
    int32_t* bias = scratches->bias.Get(step.outputs);
    const float* values = reinterpret_cast<const float*>(row + step.bias_place);
    for (int64_t u = 0; u < step.outputs; ++u) bias[u] = step.has_bias ? int8::QuantizedBias(values[u], exponent) : 0;
    return bias;
  }

  // Slot s's sums of step i become activations, by activate(shift), or of the last step the network's outputs.
  template <class Activate>
  void Finish(size_t i, int s, const int32_t* sums, const Activate& activate) {
    const int64_t n = ValuesOf(network.steps[i].layer.out);
    int& exponent = exponents[s];
    if (i + 1 < network.steps.size()) {
      const int32_t largest = Largest(sums, n);
      const int shift = int8::ActivationShift(largest);
      exponent = int8::ActivationExponent(largest, exponent, shift);
      activate(shift);
    } else {
      for (int64_t u = 0; u < n; ++u) {
        outs[s][u] = int8::Output(network.relu_at_the_end ? std::max(sums[u], 0) : sums[u], exponent);
      }
    }
  }
};

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
    Layers layers{network, row, slots, observations, outs, &scratches};
    Walk(network.steps[0].layer.in, network.steps, slots, &scratches.walk, &layers);
  }
};

}  // namespace

std::unique_ptr<Int8Backend> MakeInt8CpuBackend() { return std::make_unique<CpuBackend>(); }

}  // namespace neuroevo
