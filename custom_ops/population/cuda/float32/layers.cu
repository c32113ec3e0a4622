// Layers without sums of products that are steps of their own: pools, layer_norm, and the recall and cell layers of an
// lstm.
#include "networks/activations.h"
#include "networks/layer_norm.h"
#include "population/cuda/float32/tile.h"

namespace neuroevo::cuda {

namespace {

constexpr int kThreads = 256;

// Launches kernel(args..., values per position, first position, blocks per position) with one thread per value.
template <class Kernel, class... Args>
void LaunchForValues(Kernel kernel, int64_t values, int64_t count, device::Stream stream, const Args&... args) {
  const unsigned blocks_each = static_cast<unsigned>(CeilDivide(values, kThreads));
  ForGrids(count, blocks_each, [&](int64_t first, unsigned blocks) {
    Launch(kernel, blocks, kThreads, 0, stream, args..., values, first, blocks_each);
  });
}

__device__ inline int64_t PositionOf(int64_t first, unsigned blocks) { return first + blockIdx.x / blocks; }
__device__ inline int64_t ValueOf(unsigned blocks) { return int64_t{blockIdx.x % blocks} * kThreads + threadIdx.x; }

// Shape of a pool layer, passed to the kernel by value.
struct PoolShape {
  int height, width, channels;  // of the input
  int out_width;
  int kernel_h, kernel_w, stride, pad_top, pad_left;
  bool greatest;
};

// Computes one output value per thread, in the order of y, x and channel.
__global__ void __launch_bounds__(kThreads)
    Pool(PoolShape pool, Tensors in, Tensors out, int64_t values, int64_t first, unsigned blocks) {
  const int64_t position = PositionOf(first, blocks), i = ValueOf(blocks);
  if (i >= values) return;
  const int channel = static_cast<int>(i % pool.channels), pixel = static_cast<int>(i / pool.channels);
  const int top = pixel / pool.out_width * pool.stride - pool.pad_top;
  const int left = pixel % pool.out_width * pool.stride - pool.pad_left;
  const float* image = Of<const float>(in, position);
  float greatest = -INFINITY, sum = 0;
  int count = 0;
  for (int y = top < 0 ? 0 : top; y < top + pool.kernel_h && y < pool.height; ++y) {
    for (int x = left < 0 ? 0 : left; x < left + pool.kernel_w && x < pool.width; ++x) {
      const float value = image[(int64_t{y} * pool.width + x) * pool.channels + channel];
      greatest = value > greatest ? value : greatest;
      sum = Add(sum, value);
      ++count;
    }
  }
  Of<float>(out, position)[i] = pool.greatest ? greatest : Div(sum, static_cast<float>(count));
}

// values: number of places, each with all channels.
__global__ void __launch_bounds__(kThreads)
    LayerNorm(int channels, Tensors in, Tensors out, int64_t values, int64_t first, unsigned blocks) {
  const int64_t position = PositionOf(first, blocks), i = ValueOf(blocks);
  if (i >= values) return;
  layer_norm::Normalize(Of<const float>(in, position) + i * channels, channels,
                        Of<float>(out, position) + i * channels);
}

__device__ inline float* StateOf(const States& states, const int32_t* indices, int64_t position, int64_t place) {
  return states.first + indices[position] * states.stride + place;
}

// The output is the input followed by the cell's last output.
__global__ void __launch_bounds__(kThreads)
    Recall(int64_t inputs, int64_t place, States states, const int32_t* indices, Tensors in, Tensors out,
           int64_t values, int64_t first, unsigned blocks) {
  const int64_t position = PositionOf(first, blocks), i = ValueOf(blocks);
  if (i >= values) return;
  Of<float>(out, position)[i] =
      i < inputs ? Of<const float>(in, position)[i] : StateOf(states, indices, position, place)[i - inputs];
}

// values: number of units.
__global__ void __launch_bounds__(kThreads) CellUnit(int64_t place, States states, const int32_t* indices, Tensors in,
                                                     Tensors out, int64_t values, int64_t first, unsigned blocks) {
  const int64_t position = PositionOf(first, blocks), i = ValueOf(blocks);
  if (i >= values) return;
  const float* gates = Of<const float>(in, position) + i;
  float* h = StateOf(states, indices, position, place) + i;
  float* c = h + values;
  activations::Cell(gates[0], gates[values], gates[2 * values], gates[3 * values], c, h);
  Of<float>(out, position)[i] = *h;
}

}  // namespace

void LaunchPool(const Layer& layer, const Tensors& in, const Tensors& out, int64_t count, device::Stream stream) {
  const PoolShape pool = {
      layer.in[0],    layer.in[1],  layer.in[2],   layer.out[1],   layer.kernel_h,
      layer.kernel_w, layer.stride, layer.pad_top, layer.pad_left, layer.kind == Layer::Kind::kMaxPool};
  LaunchForValues(Pool, ValuesOf(layer.out), count, stream, pool, in, out);
}

void LaunchLayerNorm(const Layer& layer, const Tensors& in, const Tensors& out, int64_t count, device::Stream stream) {
  const int channels = layer.out[2];
  LaunchForValues(LayerNorm, ValuesOf(layer.out) / channels, count, stream, channels, in, out);
}

void LaunchRecall(const Layer& layer, const States& states, const int32_t* state_indices, const Tensors& in,
                  const Tensors& out, int64_t count, device::Stream stream) {
  LaunchForValues(Recall, ValuesOf(layer.out), count, stream, ValuesOf(layer.in), layer.state, states, state_indices,
                  in, out);
}

void LaunchCell(const Layer& layer, const States& states, const int32_t* state_indices, const Tensors& in,
                const Tensors& out, int64_t count, device::Stream stream) {
  LaunchForValues(CellUnit, ValuesOf(layer.out), count, stream, layer.state, states, state_indices, in, out);
}

}  // namespace neuroevo::cuda
