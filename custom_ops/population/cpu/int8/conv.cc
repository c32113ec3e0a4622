// Convolution of bytes with instructions that multiply and add four bytes: for a register block of output pixels and a
// few vectors of filters, loop over the taps, four per instruction. For processors without them see conv_pairs.cc.
#include "population/cpu/int8/simd.h"

#if defined(NEUROEVO_DOT_PRODUCTS)

#include <algorithm>

#include "population/cpu/int8/kernels.h"

namespace neuroevo {

namespace {

// Vectors of sums in registers; weights and an input need a few more registers.
constexpr int kSums = kVectorRegisters == 32 ? 24 : 12;
constexpr int kMaxVectors = kVectorRegisters == 32 ? 4 : 2;

struct Block {
  int64_t in_pitch;  // bytes from image row to image row
  int kernel_h;
  int64_t quads;          // per kernel row
  const int8_t* weights;  // at the block's first filter
  int64_t filters;
  int64_t filter;  // first filter of the block
  int channels;    // number of filters to store, at most kVectors * kLanes
};

template <int kPixels, int kVectors>
void Convolve(const Block& b, const Int8Pixel* pixels) {
  Sums sum[kPixels][kVectors];
  const uint8_t* window[kPixels];
#pragma GCC unroll 24
  for (int p = 0; p < kPixels; ++p) window[p] = pixels[p].window;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 24
    for (int p = 0; p < kPixels; ++p) sum[p][v] = {RawInts{}};
  }
  const int8_t* weights = b.weights;
  for (int kh = 0; kh < b.kernel_h; ++kh) {
    int64_t tap = kh * b.in_pitch;
    for (int64_t quad = 0; quad < b.quads; ++quad, tap += 4, weights += 4 * b.filters) {
      Bytes weight[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) weight[v] = Bytes::Load(weights + v * kBytes);
#pragma GCC unroll 24
      for (int p = 0; p < kPixels; ++p) {
        const Bytes value = Bytes::Repeat(window[p] + tap);
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
      sum[p][v].StorePartial(pixels[p].sums + b.filter + v * kLanes, lanes);
    }
  }
}

template <int kPixels, int kVectors>
void ConvolvePixels(int count, const Block& block, const Int8Pixel* pixels) {
  if constexpr (kPixels > 1) {
    if (count < kPixels) return ConvolvePixels<kPixels - 1, kVectors>(count, block, pixels);
  }
  Convolve<kPixels, kVectors>(block, pixels);
}

// Computes all pixels, split into blocks of nearly equal size that fit into the registers.
template <int kVectors>
void ConvolveAll(const Block& block, const Int8Pixel* pixels, int64_t count) {
  constexpr int kMaxPixels = std::min(kSums / kVectors, 12);
  const int64_t blocks = (count + kMaxPixels - 1) / kMaxPixels;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t first = count * i / blocks;
    ConvolvePixels<kMaxPixels, kVectors>(static_cast<int>(count * (i + 1) / blocks - first), block, pixels + first);
  }
}

int64_t Quads(const Layer& layer) { return (int64_t{layer.kernel_w} * layer.in[2] + 3) / 4; }

}  // namespace

// A product of bytes takes one operand without a sign, so that increases and decreases would need separate products.
bool Int8ConvAddsChanges() { return false; }

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

void Int8Conv(const Layer& layer, const int8_t* weights, int64_t in_pitch, const Int8Pixel* pixels, int64_t count) {
  const int filters = layer.out[2];
  Block block;
  block.in_pitch = in_pitch;
  block.kernel_h = layer.kernel_h;
  block.quads = Quads(layer);
  block.filters = filters;
  for (int filter = 0; filter < filters; filter += block.channels) {
    block.channels = std::min(kMaxVectors * kLanes, filters - filter);
    block.weights = weights + filter * 4;
    block.filter = filter;
    const int vectors = (block.channels + kLanes - 1) / kLanes;
    if (vectors == 1) {
      ConvolveAll<1>(block, pixels, count);
    } else if (vectors == 2 || kMaxVectors == 2) {
      ConvolveAll<2>(block, pixels, count);
    } else {
      ConvolveAll<kMaxVectors>(block, pixels, count);
    }
  }
}

}  // namespace neuroevo

#endif
