// Contribution of low-rank members to the sums of a convolution or dense layer (networks/low_rank.h). The sums over the
// center's weights are computed by tiles that many positions share.
#include "networks/low_rank.h"
#include "population/cuda/float32/tile.h"

namespace neuroevo::cuda {

namespace {

constexpr int kPlaces = 8;  // output pixels per block; a dense layer has a single output pixel
constexpr int kLanes = low_rank::kPartialSums;
constexpr int kThreads = kPlaces * kLanes;  // one thread per partial sum of each place

// Windows of a convolution. The input of a dense layer is a window, too: one pixel with all inputs as channels.
struct Windows {
  int height, width, channels;  // of the image
  int kernel_w, stride, pad_top, pad_left;
  int out_width, pixels;  // of the output
  int rank;
};

template <class Value>
__device__ inline float InputAt(const Windows& windows, const Value* image, int pixel, int term) {
  const int in_row = windows.kernel_w * windows.channels, rest = term % in_row;
  const int y = pixel / windows.out_width * windows.stride - windows.pad_top + term / in_row;
  const int x = pixel % windows.out_width * windows.stride - windows.pad_left + rest / windows.channels;
  if (y < 0 || y >= windows.height || x < 0 || x >= windows.width) return 0;
  const Value value = image[(int64_t{y} * windows.width + x) * windows.channels + rest % windows.channels];
  return sizeof(Value) == 1 ? FromByte(static_cast<unsigned>(value)) : static_cast<float>(value);
}

__device__ inline float Activated(Activation activation, float value) {
  if (activation == Activation::kRelu) return value > 0 ? value : 0;
  return activation == Activation::kTanh ? Tanh(value) : value;
}

template <class Value>
__global__ void __launch_bounds__(kThreads)
    Factors(Sums sums, Windows windows, const float* factors, int64_t first, unsigned blocks) {
  __shared__ float partial[kPlaces][kLanes];
  __shared__ float thin[kPlaces][low_rank::kMaxRank];  // t
  const int64_t position = first + blockIdx.x / blocks;
  const int first_pixel = static_cast<int>(blockIdx.x % blocks) * kPlaces;
  const int place = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const int places = min(kPlaces, windows.pixels - first_pixel);
  const float* member = sums.thetas + sums.rows[position] * sums.stride;
  const float* a = member + sums.weights;
  const float* b = a + int64_t{windows.rank} * sums.terms;
  const Value* image = Of<const Value>(sums.in, position);
  const float factor = factors[position];
  const int rank = factor == 0 ? 0 : windows.rank;
  for (int q = 0; q < rank; ++q) {
    float sum = 0;
    for (int term = lane; term < sums.terms && place < places; term += kLanes) {
      sum = Fma(InputAt(windows, image, first_pixel + place, term), a[int64_t{q} * sums.terms + term], sum);
    }
    partial[place][lane] = sum;
    __syncthreads();
    if (lane == 0) thin[place][q] = Mul(factor, low_rank::Total(partial[place]));
    __syncthreads();
  }
  float* out = Of<float>(sums.out, position) + int64_t{first_pixel} * sums.units;
  for (int i = static_cast<int>(threadIdx.x); i < places * sums.units; i += kThreads) {
    const int unit = i % sums.units;
    float value = out[i];
    for (int q = 0; q < rank; ++q) value = Fma(thin[i / sums.units][q], b[int64_t{q} * sums.units + unit], value);
    if (sums.vbn >= 0) {
      value = vbn::Normalized(value, member[sums.vbn + unit], member[sums.vbn + sums.units + unit]);
    }
    if (sums.bias >= 0) value = Add(value, member[sums.bias + unit]);
    out[i] = Activated(sums.activation, value);
  }
}

}  // namespace

void LaunchFactors(const Sums& sums, const Layer& layer, const float* factors, int64_t count, device::Stream stream) {
  Windows windows = {1, 1, sums.terms, 1, 1, 0, 0, 1, 1, layer.rank};
  if (layer.kind == Layer::Kind::kConv) {
    windows = {layer.in[0],    layer.in[1],  layer.in[2],
               layer.kernel_w, layer.stride, layer.pad_top,
               layer.pad_left, layer.out[1], layer.out[0] * layer.out[1],
               layer.rank};
  }
  const unsigned blocks_each = static_cast<unsigned>(CeilDivide(windows.pixels, kPlaces));
  ForGrids(count, blocks_each, [&](int64_t first, unsigned blocks) {
    const auto kernel = sums.in.bytes ? Factors<uint8_t> : Factors<float>;
    Launch(kernel, blocks, kThreads, 0, stream, sums, windows, factors, first, blocks_each);
  });
}

}  // namespace neuroevo::cuda
