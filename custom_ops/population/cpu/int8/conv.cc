// Convolution of bytes: a register block of neighboring output pixels by some vectors of filters goes over the taps,
// four of them at a time.
#include <algorithm>

#include "population/cpu/int8/kernels.h"
#include "population/cpu/int8/simd.h"

namespace neuroevo {

namespace {

// Sums in registers at once; weights, and an input, take some more.
constexpr int kSums = kVectorRegisters == 32 ? 24 : 8;
constexpr int kMaxVectors = kVectorRegisters == 32 ? 4 : 2;

struct Block {
  const uint8_t* in;   // first tap of the first pixel
  int64_t in_pitch;    // bytes from image row to image row
  int64_t pixel_step;  // bytes from pixel to pixel: stride * channels
  int kernel_h;
  int64_t quads;          // per kernel row
  const int8_t* weights;  // at the block's first filter
  int64_t filters;
  const int32_t* bias;  // at the block's first filter
  int32_t* sums;        // of the first pixel, at the block's first filter
  int channels;         // to be stored, at most kVectors * kLanes
};

template <int kPixels, int kVectors>
void Convolve(const Block& b) {
  Sums sum[kPixels][kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Sums bias = Sums::Load(b.bias + v * kLanes);
#pragma GCC unroll 24
    for (int p = 0; p < kPixels; ++p) sum[p][v] = bias;
  }
  const int8_t* weights = b.weights;
  for (int kh = 0; kh < b.kernel_h; ++kh) {
    const uint8_t* in = b.in + kh * b.in_pitch;
    for (int64_t quad = 0; quad < b.quads; ++quad, in += 4, weights += 4 * b.filters) {
      Bytes weight[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) weight[v] = Bytes::Load(weights + v * kBytes);
#pragma GCC unroll 24
      for (int p = 0; p < kPixels; ++p) {
        const Bytes value = Bytes::Repeat(in + p * b.pixel_step);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[p][v] = AddProducts(sum[p][v], value, weight[v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int lanes = std::max(0, std::min(kLanes, b.channels - v * kLanes));
#pragma GCC unroll 24
    for (int p = 0; p < kPixels; ++p) {
      int32_t* place = b.sums + p * b.filters + v * kLanes;
      if (lanes == kLanes) {
        sum[p][v].Store(place);
      } else {
        sum[p][v].StorePartial(place, lanes);
      }
    }
  }
}

// A row of pixels, cut into blocks of nearly equal length of at most kPixels.
template <int kPixels, int kVectors>
void ConvolvePixels(int pixels, const Block& block) {
  if constexpr (kPixels > 1) {
    if (pixels < kPixels) return ConvolvePixels<kPixels - 1, kVectors>(pixels, block);
  }
  Convolve<kPixels, kVectors>(block);
}

template <int kVectors>
void ConvolveRow(int64_t width, Block block) {
  constexpr int kMaxPixels = std::min(kSums / kVectors, 12);
  const int64_t blocks = (width + kMaxPixels - 1) / kMaxPixels;
  const uint8_t* in = block.in;
  int32_t* sums = block.sums;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t x = width * i / blocks;
    block.in = in + x * block.pixel_step;
    block.sums = sums + x * block.filters;
    ConvolvePixels<kMaxPixels, kVectors>(static_cast<int>(width * (i + 1) / blocks - x), block);
  }
}

int64_t Quads(const Layer& layer) { return (int64_t{layer.kernel_w} * layer.in[2] + 3) / 4; }

}  // namespace

int64_t Int8ConvBytes(const Layer& layer) { return layer.kernel_h * Quads(layer) * layer.out[2] * 4; }

void ArrangeInt8Conv(const Layer& layer, const int8_t* plain, int8_t* arranged) {
  const int64_t taps = int64_t{layer.kernel_w} * layer.in[2], filters = layer.out[2];
  for (int kh = 0; kh < layer.kernel_h; ++kh, plain += taps * filters) {
    for (int64_t tap = 0; tap < Quads(layer) * 4; tap += 4) {
      for (int64_t filter = 0; filter < filters; ++filter) {
        for (int64_t t = tap; t < tap + 4; ++t) *arranged++ = t < taps ? plain[t * filters + filter] : int8_t{0};
      }
    }
  }
}

void Int8Conv(const Layer& layer, const int8_t* weights, const int32_t* bias, const uint8_t* in, int64_t in_pitch,
              int32_t* sums) {
  const auto [height, width, filters] = layer.out;
  Block block;
  block.in_pitch = in_pitch;
  block.pixel_step = int64_t{layer.stride} * layer.in[2];
  block.kernel_h = layer.kernel_h;
  block.quads = Quads(layer);
  block.filters = filters;
  for (int y = 0; y < height; ++y) {
    block.in = in + int64_t{y} * layer.stride * in_pitch;
    for (int filter = 0; filter < filters; filter += block.channels) {
      block.channels = std::min(kMaxVectors * kLanes, filters - filter);
      block.weights = weights + filter * 4;
      block.bias = bias + filter;
      block.sums = sums + int64_t{y} * width * filters + filter;
      const int vectors = (block.channels + kLanes - 1) / kLanes;
      if (vectors == 1) {
        ConvolveRow<1>(width, block);
      } else if (vectors == 2 || kMaxVectors == 2) {
        ConvolveRow<2>(width, block);
      } else {
        ConvolveRow<kMaxVectors>(width, block);
      }
    }
  }
}

}  // namespace neuroevo
