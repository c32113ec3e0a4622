// Convolution: a block of output pixels by a few vectors of channels, all in registers, goes over the taps.
//
// A tap is a place in the kernel's window: row, column, channel. ReLU and black screens make many inputs zero, mostly
// the same channels in neighbouring pixels: a block lists the taps that are not zero in all of its windows, and then
// goes over the list without a test. Screens have large flat areas: a pixel whose window holds what its left
// neighbour's holds is copied from it.
#include <algorithm>

#include "core/simd.h"
#include "population/cpu_kernels.h"
#include "population/vbn.h"

namespace neuroevo {

namespace {

// The most vectors of channels in a block.
constexpr int kWidest = kVectorRegisters == 32 ? 4 : 2;

// Pixels of a block: enough sums to hide the latency of fused multiply-adds and to make up for the loads of weights,
// yet few pixels, since fewer have more zeros in common. By forward_bench.
constexpr int BlockPixels(int vectors) {
  if (kVectorRegisters == 32) return vectors == 4 ? 5 : vectors == 2 ? 7 : 8;
  return vectors == 2 ? 6 : 12;
}

// Where weights come from the L2 cache, in rows with gaps, they are prefetched that many taps ahead.
constexpr int kTapsAhead = 8;

// Floats of weights that are on their way from memory while windows are compared; more gain nothing.
constexpr int64_t kFirstWeights = 8192;

struct Shape {
  int64_t in_pitch;
  int kernel_h;
  int64_t row_taps;  // per row of the kernel: adjacent in the image as in the weights
  int64_t filters;
};

// Whether two windows hold the same values; false also for differences in what is loaded beyond their ends.
bool SameWindow(const Shape& shape, const float* a, const float* b) {
  for (int kh = 0; kh < shape.kernel_h; ++kh, a += shape.in_pitch, b += shape.in_pitch) {
    for (int64_t i = 0; i < shape.row_taps; i += kLanes) {
      if (NonZero(FromBits(ToBits(Floats::Load(a + i)) ^ ToBits(Floats::Load(b + i)))) != 0) return false;
    }
  }
  return true;
}

// Lists the taps that are not zero in all of the block's windows: where they are in a window, and the same as rows of
// the weights. Returns how many.
template <int kPixels>
int64_t ListTaps(const Shape& shape, const ConvPixel* pixels, int32_t* places, int32_t* rows) {
  const float* window[kPixels];
  for (int p = 0; p < kPixels; ++p) window[p] = pixels[p].window;
  int64_t count = 0;
  for (int kh = 0; kh < shape.kernel_h; ++kh) {
    for (int64_t tap = 0; tap < shape.row_taps; tap += kLanes) {
      const int64_t place = kh * shape.in_pitch + tap;
      Words any(0u);
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) any = any | ToBits(Floats::Load(window[p] + place));
      LaneMask wanted = NonZero(FromBits(any));
      if (shape.row_taps - tap < kLanes) wanted &= FirstLanes(shape.row_taps - tap);
      const Words lanes = LanesOf(wanted);
      (lanes + Words(static_cast<uint32_t>(place))).Store(places + count);
      (lanes + Words(static_cast<uint32_t>(kh * shape.row_taps + tap))).Store(rows + count);
      count += __builtin_popcount(wanted);
    }
  }
  return count;
}

// kPixels x (kVectors * kLanes) outputs, the first one being that channel.
template <int kPixels, int kVectors>
void Convolve(const ConvPixel* pixels, const int32_t* places, const int32_t* rows, int64_t count, const float* weights,
              int64_t filters, const Epilogue& epilogue, int channel) {
  const float* window[kPixels];
  Floats sum[kPixels][kVectors];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
    window[p] = pixels[p].window;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[p][v] = Floats(0.0f);
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = places[i];
    const float* row = weights + rows[i] * filters + channel;
    if (kVectors == 4) {
      const float* later = weights + rows[i + kTapsAhead] * filters + channel;  // after the last one, of any old list
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) __builtin_prefetch(later + v * kLanes);
    }
    Floats weight[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weight[v] = Floats::Load(row + v * kLanes);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      const Floats value(window[p][place]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[p][v] = Fma(value, weight[v], sum[p][v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t first = channel + v * kLanes;
    const int lanes = static_cast<int>(std::min<int64_t>(kLanes, filters - first));
    const bool normalises = epilogue.means != nullptr;
    const Floats mean = normalises ? Floats::Load(epilogue.means + first) : Floats(0.0f);
    const Floats factor = normalises ? Floats::Load(epilogue.factors + first) : Floats(1.0f);
    const Floats bias = epilogue.bias == nullptr ? Floats(0.0f) : Floats::Load(epilogue.bias + first);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      Floats value = sum[p][v];
      if (normalises) value = vbn::Normalised(value, mean, factor);
      if (epilogue.bias != nullptr) value = Add(value, bias);
      if (epilogue.relu) value = Relu(value);
      value.StorePartial(pixels[p].out + first, lanes);
    }
  }
}

// All pixels, in blocks of those that a layer with blocks of kVectors vectors has.
template <int kVectors>
void ConvolveAll(const Shape& shape, const float* weights, const Epilogue& epilogue, int64_t count,
                 const ConvPixel* pixels, int32_t* places, int32_t* rows) {
  constexpr int kPixels = BlockPixels(kVectors);
  for (int64_t i = 0; i < count; i += kPixels) {
    ConvPixel block[kPixels];  // the last one again where there are no more
    for (int p = 0; p < kPixels; ++p) block[p] = pixels[std::min(i + p, count - 1)];
    const int64_t taps = ListTaps<kPixels>(shape, block, places, rows);
    int channel = 0;
    const auto sweep = [&](auto convolve, int vectors) {
      for (; channel + (vectors - 1) * kLanes < shape.filters; channel += vectors * kLanes) {
        convolve(block, places, rows, taps, weights, shape.filters, epilogue, channel);
      }
    };
    sweep(Convolve<kPixels, kVectors>, kVectors);
    if (kVectors > 2) sweep(Convolve<kPixels, 2>, 2);
    if (kVectors > 1) sweep(Convolve<kPixels, 1>, 1);
  }
}

}  // namespace

void CpuConv(const Layer& layer, const float* weights, const Epilogue& epilogue, const float* in, int64_t in_pitch,
             float* out, int64_t out_pitch, ConvScratch* scratch) {
  const auto [height, width, filters] = layer.out;
  const Shape shape = {in_pitch, layer.kernel_h, int64_t{layer.kernel_w} * layer.in[2], filters};
  const size_t taps = static_cast<size_t>(shape.kernel_h * shape.row_taps + std::max(kLanes, kTapsAhead));
  scratch->pixels.resize(static_cast<size_t>(height) * width);
  if (scratch->places.size() < taps) {
    scratch->places.resize(taps);
    scratch->rows.resize(taps);
  }
  // Pixels to be computed from the front, pixels to be copied from the back.
  const int64_t step = int64_t{layer.stride} * layer.in[2];
  ConvPixel* pixels = scratch->pixels.data();
  ConvPixel *front = pixels, *end = pixels + scratch->pixels.size(), *back = end;
  const int64_t ahead = std::min(layer.weights, kFirstWeights) / height + 1;
  for (int y = 0; y < height; ++y) {
    for (int64_t i = 0; i < ahead; i += 64 / sizeof(float)) __builtin_prefetch(weights + y * ahead + i);
    for (int x = 0; x < width; ++x) {
      const ConvPixel pixel = {in + y * layer.stride * in_pitch + x * step, out + y * out_pitch + int64_t{x} * filters};
      if (x > 0 && SameWindow(shape, pixel.window, pixel.window - step)) {
        *--back = pixel;
      } else {
        *front++ = pixel;
      }
    }
  }
  const auto convolve_all = filters > 3 * kLanes && kWidest == 4 ? ConvolveAll<kWidest>
                            : filters > kLanes                   ? ConvolveAll<2>
                                                                 : ConvolveAll<1>;
  convolve_all(shape, weights, epilogue, front - pixels, pixels, scratch->places.data(), scratch->rows.data());
  while (end != back) {
    --end;
    std::copy_n(end->out - filters, filters, end->out);
  }
}

}  // namespace neuroevo
