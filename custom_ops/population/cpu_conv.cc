// Convolution: a register block of neighbouring output pixels by one or two vectors of channels goes over the taps.
#include <algorithm>

#include "core/simd.h"
#include "population/cpu_kernels.h"

namespace neuroevo {

namespace {

// Sums of kPixels x 2 vectors, two weights and an input are in registers at once.
constexpr int kMaxPixels = kVectorRegisters == 32 ? 12 : 6;

struct Block {
  const float* in;     // first tap of the first pixel
  int64_t in_pitch;    // floats from image row to image row
  int64_t pixel_step;  // floats from pixel to pixel: stride * channels
  int kernel_h;
  int64_t taps;          // per kernel row: kernel_w * channels, adjacent in the image as in the weights
  const float* weights;  // [kernel_h * taps, filters], at the block's first channel
  int64_t filters;
  const float* bias;  // at the block's first channel, or null
  bool relu;
  float* out;    // of the first pixel, at the block's first channel
  int channels;  // to be stored, at most kVectors * kLanes
};

template <int kPixels, int kVectors>
void Convolve(const Block& b) {
  Floats sum[kPixels][kVectors];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[p][v] = Floats(0.0f);
  }
  const float* weights = b.weights;
  for (int kh = 0; kh < b.kernel_h; ++kh) {
    const float* in = b.in + kh * b.in_pitch;
    for (int64_t tap = 0; tap < b.taps; ++tap, weights += b.filters) {
      Floats weight[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) weight[v] = Floats::Load(weights + v * kLanes);
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const Floats value(in[p * b.pixel_step + tap]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[p][v] = Fma(value, weight[v], sum[p][v]);
      }
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const int lanes = std::min(kLanes, b.channels - v * kLanes);
    const Floats bias = b.bias == nullptr ? Floats(0.0f) : Floats::Load(b.bias + v * kLanes);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      Floats value = sum[p][v];
      if (b.bias != nullptr) value = Add(value, bias);
      if (b.relu) value = Relu(value);
      value.StorePartial(b.out + p * b.filters + v * kLanes, lanes);
    }
  }
}

template <int kVectors>
void ConvolvePixels(int pixels, const Block& block) {
  switch (pixels) {
    case 1:
      return Convolve<1, kVectors>(block);
    case 2:
      return Convolve<2, kVectors>(block);
    case 3:
      return Convolve<3, kVectors>(block);
    case 4:
      return Convolve<4, kVectors>(block);
    case 5:
      return Convolve<5, kVectors>(block);
    case 6:
      return Convolve<6, kVectors>(block);
#if defined(NEUROEVO_AVX512)
    case 7:
      return Convolve<7, kVectors>(block);
    case 8:
      return Convolve<8, kVectors>(block);
    case 9:
      return Convolve<9, kVectors>(block);
    case 10:
      return Convolve<10, kVectors>(block);
    case 11:
      return Convolve<11, kVectors>(block);
    case 12:
      return Convolve<12, kVectors>(block);
#endif
  }
}

}  // namespace

void CpuConv(const Layer& layer, const float* weights, const Epilogue& epilogue, const float* in, int64_t in_pitch,
             float* out, int64_t out_pitch) {
  const auto [height, width, filters] = layer.out;
  const int64_t channels = layer.in[2];
  Block block;
  block.in_pitch = in_pitch;
  block.pixel_step = layer.stride * channels;
  block.kernel_h = layer.kernel_h;
  block.taps = layer.kernel_w * channels;
  block.filters = filters;
  block.relu = epilogue.relu;
  // A row of pixels is cut into blocks of nearly equal length.
  const int blocks = (width + kMaxPixels - 1) / kMaxPixels;
  for (int y = 0; y < height; ++y) {
    for (int channel = 0; channel < filters; channel += 2 * kLanes) {
      block.weights = weights + channel;
      block.bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + channel;
      block.channels = std::min(2 * kLanes, filters - channel);
      for (int i = 0; i < blocks; ++i) {
        const int64_t x = int64_t{width} * i / blocks;
        const int pixels = static_cast<int>(int64_t{width} * (i + 1) / blocks - x);
        block.in = in + int64_t{y} * layer.stride * in_pitch + x * block.pixel_step;
        block.out = out + y * out_pitch + x * filters + channel;
        if (block.channels > kLanes) {
          ConvolvePixels<2>(pixels, block);
        } else {
          ConvolvePixels<1>(pixels, block);
        }
      }
    }
  }
}

}  // namespace neuroevo
