// Steps without sums: vbn, bias and activations that do not follow a convolution or dense layer, and conversion of
// uint8 inputs of dense layers.
#include "networks/activations.h"
#include "population/cuda/float32/tile.h"

namespace neuroevo::cuda {

namespace {

constexpr int kThreads = 256;

template <class Value>
__global__ void __launch_bounds__(kThreads) Elementwise(Sums sums, int64_t values, int64_t first, unsigned blocks) {
  const int64_t position = first + blockIdx.x / blocks;
  const int64_t i = int64_t{blockIdx.x % blocks} * kThreads + threadIdx.x;
  if (i >= values) return;
  const Value in = Of<const Value>(sums.in, position)[i];
  float value = sizeof(Value) == 1 ? FromByte(static_cast<unsigned>(in)) : static_cast<float>(in);
  const float* theta = sums.thetas + sums.rows[position] * sums.stride + i % sums.units;
  if (sums.vbn >= 0) value = vbn::Normalized(value, theta[sums.vbn], theta[sums.vbn + sums.units]);
  if (sums.bias >= 0) value = Add(value, theta[sums.bias]);
  if (sums.activation == Activation::kRelu) value = value > 0 ? value : 0;
  if (sums.activation == Activation::kTanh) value = Tanh(value);
  if (sums.activation == Activation::kLeakyRelu) value = activations::LeakyRelu(value, sums.slope);
  if (sums.activation == Activation::kSilu) value = activations::Silu(value);
  if (sums.activation == Activation::kGelu) value = activations::Gelu(value);
  Of<float>(sums.out, position)[i] = value;
}

}  // namespace

void LaunchElementwise(const Sums& sums, int64_t values, int64_t count, device::Stream stream) {
  const unsigned blocks_each = static_cast<unsigned>(CeilDivide(values, kThreads));
  ForGrids(count, blocks_each, [&](int64_t first, unsigned blocks) {
    const auto kernel = sums.in.bytes ? Elementwise<uint8_t> : Elementwise<float>;
    Launch(kernel, blocks, kThreads, 0, stream, sums, values, first, blocks_each);
  });
}

}  // namespace neuroevo::cuda
