// Reference implementation of integer networks in scalar code. The other backends must be bit-identical to it.
#include <algorithm>
#include <cstring>

#include "networks/int8/rules.h"
#include "population/int8/backend.h"

namespace neuroevo {

namespace {

int32_t ConvSum(const Layer& layer, const int8_t* weights, const std::vector<uint8_t>& in, int y, int x, int filter) {
  const auto [height, width, channels] = layer.in;
  int32_t sum = 0;
  for (int kh = 0; kh < layer.kernel_h; ++kh) {
    for (int kw = 0; kw < layer.kernel_w; ++kw) {
      const int in_y = y * layer.stride + kh - layer.pad_top, in_x = x * layer.stride + kw - layer.pad_left;
      if (in_y < 0 || in_y >= height || in_x < 0 || in_x >= width) continue;
      for (int channel = 0; channel < channels; ++channel) {
        const int64_t tap = (int64_t{kh} * layer.kernel_w + kw) * channels + channel;
        sum += in[(int64_t{in_y} * width + in_x) * channels + channel] * weights[tap * layer.out[2] + filter];
      }
    }
  }
  return sum;
}

int32_t DenseSum(const Int8Step& step, const int8_t* weights, const std::vector<uint8_t>& in, int64_t unit) {
  int32_t sum = 0;
  for (int64_t i = 0; i < step.inputs; ++i) sum += in[i] * weights[i * step.outputs + unit];
  return sum;
}

class ReferenceBackend : public Int8Backend {
 public:
  int64_t ConvBytes(const Layer& layer) const override { return layer.weights; }
  void ArrangeConv(const Layer& layer, const int8_t* plain, int8_t* arranged) const override {
    memcpy(arranged, plain, layer.weights);
  }

  void Evaluate(const Int8Network& network, const char* row, int slots, const void* const* observations,
                SlotMemory* const*, float* const* outs) const override {
    for (int s = 0; s < slots; ++s) EvaluateOne(network, row, static_cast<const uint8_t*>(observations[s]), outs[s]);
  }

 private:
  static void EvaluateOne(const Int8Network& network, const char* row, const uint8_t* observation, float* out) {
    const auto& shape = network.steps[0].layer.in;
    std::vector<uint8_t> values(observation, observation + int64_t{1} * shape[0] * shape[1] * shape[2]);
    std::vector<int32_t> sums;
    int exponent = 0;
    for (size_t i = 0; i < network.steps.size(); ++i) {
      const Int8Step& step = network.steps[i];
      const int8_t* weights = reinterpret_cast<const int8_t*>(row + step.weights_place);
      const float* bias = reinterpret_cast<const float*>(row + step.bias_place);
      exponent += reinterpret_cast<const int32_t*>(row)[i];
      sums.clear();
      for (int y = 0; y < step.layer.out[0]; ++y) {
        for (int x = 0; x < step.layer.out[1]; ++x) {
          for (int c = 0; c < step.layer.out[2]; ++c) {
            const int32_t sum =
                step.dense() ? DenseSum(step, weights, values, c) : ConvSum(step.layer, weights, values, y, x, c);
            sums.push_back(sum + (step.has_bias ? int8::QuantizedBias(bias[c], exponent) : 0));
          }
        }
      }
      if (i + 1 == network.steps.size()) break;
      const int32_t largest = std::max(0, *std::max_element(sums.begin(), sums.end()));
      const int shift = int8::ActivationShift(largest);
      values.clear();
      for (int32_t sum : sums) values.push_back(int8::Activation(sum, shift));
      exponent = int8::ActivationExponent(largest, exponent, shift);
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      out[i] = int8::Output(network.relu_at_the_end ? std::max(sums[i], 0) : sums[i], exponent);
    }
  }
};

}  // namespace

std::unique_ptr<Int8Backend> MakeInt8ReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace neuroevo
