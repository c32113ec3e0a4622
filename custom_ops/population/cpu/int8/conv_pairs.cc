// Convolution of bytes for processors without instructions that multiply and add four bytes: the image and the weights
// are widened to 16 bits and multiplied and added in pairs. (The instruction for pairs of bytes saturates.) For a block
// of output pixels and a few vectors of filters, loop over the pairs of taps that are not zero in all of its windows.
// Weights are processed in chunks that fit into the L1 cache, each for all pixels before the next one; meanwhile,
// partial sums are stored in the output. If only a few pixels of a window have changed, their differences are
// multiplied instead, which fit into 16 bits.
#include "population/cpu/int8/simd.h"

#if !defined(NEUROEVO_DOT_PRODUCTS)

#include <algorithm>
#include <vector>

#include "population/cpu/int8/kernels.h"

namespace neuroevo {

namespace {

constexpr int kPixels = kVectorRegisters == 32 ? 4 : 3;  // per block: larger blocks can skip fewer pairs
constexpr int kWidest = 4;                               // vectors of filters in a block
constexpr int64_t kChunkBytes = 24 << 10;                // bytes of weights per chunk

// Returns the number of pairs of a kernel row's taps, which are also adjacent in the image; the last may be padded.
int64_t PairsOfRow(const Layer& layer) { return (int64_t{layer.kernel_w} * layer.in[2] + 1) / 2; }

struct Scratch {
  std::vector<int16_t> windows;  // windows of a block's pixels, each with a chunk's rows
  std::vector<int32_t> listed;   // indices of the chunk's nonzero pairs
};

// Widens a row of a window, or its differences to `before`, to 16 bits. Whole vectors are written, which may overwrite
// the start of the next row.
void Widen(const uint8_t* bytes, const uint8_t* before, int64_t n, int16_t* words) {
  const auto load = [](const uint8_t* from) {
    typedef uint8_t HalfBytes __attribute__((vector_size(kBytes / 2)));
    HalfBytes half;
    memcpy(&half, from, sizeof(half));
    return __builtin_convertvector(half, RawShorts);
  };
  for (int64_t i = 0; i < n; i += kBytes / 2) {
    RawShorts wide = load(bytes + i);
    if (before != nullptr) wide -= load(before + i);
    memcpy(words + i, &wide, sizeof(wide));
  }
}

// Lists the pairs of a chunk that are not zero in all of the windows; returns their number.
int64_t ListPairs(int64_t pairs, const int16_t* const* windows, int32_t* listed) {
  int64_t count = 0;
  for (int64_t pair = 0; pair < pairs; pair += kLanes) {
    RawWords any{};
#pragma GCC unroll 4
    for (int p = 0; p < kPixels; ++p) any |= (RawWords)Bytes::Load(windows[p] + 2 * pair).v;
    LaneMask wanted = AnyBit(Words(any));
    if (pairs - pair < kLanes) wanted &= FirstLanes(pairs - pair);
    Words(LanesOf(wanted).v + static_cast<uint32_t>(pair)).Store(listed + count);
    count += __builtin_popcount(wanted);
  }
  return count;
}

// Adds a chunk to the sums of kPixels pixels and kVectors vectors of filters, starting at `filter`, or to zeros.
template <int kVectors>
__attribute__((noinline)) void Convolve(bool from_zero, const int16_t* const* windows, const int32_t* listed,
                                        int64_t count, const int16_t* weights, int filter, int64_t filters,
                                        int32_t* const* outs) {
  Sums sum[kPixels][kVectors];
  const int16_t* window[kPixels];
#pragma GCC unroll 4
  for (int p = 0; p < kPixels; ++p) {
    window[p] = windows[p];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum[p][v] = from_zero ? Sums{} : Sums::Load(outs[p] + filter + v * kLanes);
    }
  }
  weights += filter * 2;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t pair = listed[i];
    RawShorts value[kPixels];
#pragma GCC unroll 4
    for (int p = 0; p < kPixels; ++p) value[p] = (RawShorts)Bytes::Repeat(window[p] + 2 * pair).v;
    const int16_t* of_pair = weights + pair * filters * 2;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const RawShorts weight = (RawShorts)Bytes::Load(of_pair + v * 2 * kLanes).v;
#pragma GCC unroll 4
      for (int p = 0; p < kPixels; ++p) sum[p][v].v += MultiplyAddPairs(value[p], weight);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t first = filter + v * kLanes;
    const int lanes = static_cast<int>(std::min<int64_t>(kLanes, filters - first));
#pragma GCC unroll 4
    for (int p = 0; p < kPixels; ++p) sum[p][v].StorePartial(outs[p] + first, lanes);
  }
}

}  // namespace

bool Int8ConvAddsChanges() { return true; }

int64_t Int8ConvBytes(const Layer& layer) {
  return layer.kernel_h * PairsOfRow(layer) * layer.out[2] * 2 * static_cast<int64_t>(sizeof(int16_t));
}

void ArrangeInt8Conv(const Layer& layer, const int8_t* plain, int8_t* arranged) {
  const int64_t taps = int64_t{layer.kernel_w} * layer.in[2], filters = layer.out[2];
  for (int kh = 0; kh < layer.kernel_h; ++kh, plain += taps * filters) {
    for (int64_t tap = 0; tap < taps; tap += 2) {
      for (int64_t filter = 0; filter < filters; ++filter) {
        const int16_t pair[2] = {plain[tap * filters + filter],
                                 tap + 1 < taps ? plain[(tap + 1) * filters + filter] : int8_t{0}};
        memcpy(arranged, pair, sizeof(pair));
        arranged += sizeof(pair);
      }
    }
  }
}

void Int8Conv(const Layer& layer, const int8_t* weights, int64_t in_pitch, const Int8Pixel* pixels, int64_t count) {
  thread_local Scratch own;
  Scratch& scratch = own;
  const int64_t pairs = PairsOfRow(layer), filters = layer.out[2];
  const int64_t row_bytes = pairs * filters * 2 * static_cast<int64_t>(sizeof(int16_t));  // weights per kernel row
  const int64_t rows = std::clamp<int64_t>(kChunkBytes / row_bytes, 1, layer.kernel_h);   // kernel rows per chunk
  const int64_t window_pitch = rows * pairs * 2 + 2 * kLanes;                             // whole vectors are written
  scratch.windows.resize(std::max<size_t>(scratch.windows.size(), kPixels * window_pitch));
  scratch.listed.resize(std::max<size_t>(scratch.listed.size(), rows * pairs + kLanes));
  for (int64_t begin = 0; begin < layer.kernel_h; begin += rows) {
    const int64_t here = std::min(rows, layer.kernel_h - begin);
    const bool from_zero = begin == 0 && count > 0 && pixels[0].before == nullptr;
    const int16_t* words = reinterpret_cast<const int16_t*>(weights + begin * row_bytes);
    for (int64_t i = 0; i < count; i += kPixels) {
      const int16_t* windows[kPixels];
      int32_t* outs[kPixels];
      for (int p = 0; p < kPixels; ++p) {
        const Int8Pixel& pixel = pixels[std::min(i + p, count - 1)];
        int16_t* window = scratch.windows.data() + p * window_pitch;
        for (int64_t kh = 0; kh < here; ++kh) {
          const int64_t row = (begin + kh) * in_pitch;
          const uint8_t* before = pixel.before == nullptr ? nullptr : pixel.before + row;
          Widen(pixel.window + row, before, 2 * pairs, window + kh * 2 * pairs);
        }
        windows[p] = window;
        outs[p] = pixel.sums;
      }
      const int64_t listed = ListPairs(here * pairs, windows, scratch.listed.data());
      int filter = 0;
      const auto sweep = [&](auto convolve, int vectors) {
        for (; filter + (vectors - 1) * kLanes < filters; filter += vectors * kLanes) {
          convolve(from_zero, windows, scratch.listed.data(), listed, words, filter, filters, outs);
        }
      };
      sweep(Convolve<kWidest>, kWidest);
      sweep(Convolve<2>, 2);
      sweep(Convolve<1>, 1);
    }
  }
}

}  // namespace neuroevo

#endif
