// Convolution of bytes where no instruction multiplies and adds four of them: the image and the weights become words of
// 16 bits, which are multiplied and added in pairs. (The instruction that does so with pairs of bytes saturates.) A
// block of output pixels by some vectors of filters goes over the pairs of taps that are not zero in all of its
// windows. Weights are taken in chunks that the L1 cache holds, all pixels with one before the next; sums wait in the
// output meanwhile.
#include "population/cpu/int8/simd.h"

#if !defined(NEUROEVO_DOT_PRODUCTS)

#include <algorithm>
#include <vector>

#include "population/cpu/int8/kernels.h"

namespace neuroevo {

namespace {

constexpr int kPixels = kVectorRegisters == 32 ? 4 : 3;  // of a block: more have fewer pairs in common that are zero
constexpr int kWidest = 4;                               // vectors of filters in a block
constexpr int64_t kChunkBytes = 24 << 10;                // of weights

// A kernel row's taps, adjacent in the image too, in pairs, the last one filled up with a zero.
int64_t PairsOfRow(const Layer& layer) { return (int64_t{layer.kernel_w} * layer.in[2] + 1) / 2; }

// Rows [begin, end) of a kernel.
struct Chunk {
  int64_t begin, end;
};

struct Scratch {
  std::vector<int16_t> words;    // the image, as far as it is read
  std::vector<int32_t> places;   // of a block's pairs, in a window
  std::vector<int32_t> weights;  // likewise, in the weights
};

void Widen(const uint8_t* bytes, int64_t n, int16_t* words) {
  for (int64_t i = 0; i < n; ++i) words[i] = bytes[i];
}

// Lists a chunk's pairs; returns how many.
int64_t ListPairs(const Layer& layer, const Chunk& chunk, int64_t in_pitch, const int16_t* const* windows,
                  Scratch* scratch) {
  const int64_t pairs = PairsOfRow(layer);
  const uint32_t row_words = 2 * static_cast<uint32_t>(layer.out[2]);  // of a pair's weights
  int64_t count = 0;
  for (int64_t kh = chunk.begin; kh < chunk.end; ++kh) {
    for (int64_t pair = 0; pair < pairs; pair += kLanes) {
      const int64_t place = kh * in_pitch + 2 * pair;
      RawWords any{};
#pragma GCC unroll 4
      for (int p = 0; p < kPixels; ++p) {
        RawWords values;
        memcpy(&values, windows[p] + place, sizeof(values));
        any |= values;
      }
      LaneMask wanted = AnyBit(Words(any));
      if (pairs - pair < kLanes) wanted &= FirstLanes(pairs - pair);
      const RawWords lanes = LanesOf(wanted).v;
      Words(lanes * 2 + static_cast<uint32_t>(place)).Store(scratch->places.data() + count);
      Words((lanes + static_cast<uint32_t>(kh * pairs + pair)) * row_words).Store(scratch->weights.data() + count);
      count += __builtin_popcount(wanted);
    }
  }
  return count;
}

// The sums of kPixels pixels and kVectors vectors of filters from `filter` on, in a chunk and those before.
template <int kVectors>
__attribute__((noinline)) void Convolve(bool first_chunk, const int16_t* const* windows, const Scratch& scratch,
                                        int64_t pairs, const int16_t* weights, int filter, int filters,
                                        int32_t* const* outs) {
  Sums sum[kPixels][kVectors];
  const int16_t* window[kPixels];
#pragma GCC unroll 4
  for (int p = 0; p < kPixels; ++p) {
    window[p] = windows[p];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum[p][v] = first_chunk ? Sums{} : Sums::Load(outs[p] + filter + v * kLanes);
    }
  }
  weights += int64_t{filter} * 2;
  const int32_t *place = scratch.places.data(), *row = scratch.weights.data();
  for (int64_t i = 0; i < pairs; ++i) {
    RawShorts value[kPixels];
#pragma GCC unroll 4
    for (int p = 0; p < kPixels; ++p) value[p] = (RawShorts)Bytes::Repeat(window[p] + place[i]).v;
    const int16_t* of_pair = weights + row[i];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const RawShorts weight = (RawShorts)Bytes::Load(of_pair + v * 2 * kLanes).v;
#pragma GCC unroll 4
      for (int p = 0; p < kPixels; ++p) sum[p][v].v += MultiplyAddPairs(value[p], weight);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int first = filter + v * kLanes, lanes = std::min(kLanes, filters - first);
#pragma GCC unroll 4
    for (int p = 0; p < kPixels; ++p) {
      if (lanes == kLanes) {
        sum[p][v].Store(outs[p] + first);
      } else {
        sum[p][v].StorePartial(outs[p] + first, lanes);
      }
    }
  }
}

}  // namespace

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
  if (count == 0) return;
  thread_local Scratch own;
  Scratch& scratch = own;
  const int64_t pairs = PairsOfRow(layer), all_pairs = layer.kernel_h * pairs;
  if (static_cast<int64_t>(scratch.places.size()) < all_pairs + kLanes) {  // whole vectors are written
    scratch.places.resize(all_pairs + kLanes);
    scratch.weights.resize(all_pairs + kLanes);
  }
  // Windows are in the image's order, so that what is read begins with the first one and ends with the last one.
  const uint8_t* first = pixels[0].window;
  const int64_t read = pixels[count - 1].window - first + (layer.kernel_h - 1) * in_pitch + 2 * pairs;
  if (static_cast<int64_t>(scratch.words.size()) < read + 2 * kLanes) scratch.words.resize(read + 2 * kLanes);
  Widen(first, read, scratch.words.data());
  const int16_t* words = reinterpret_cast<const int16_t*>(weights);
  const int filters = layer.out[2];
  const int64_t row_bytes = Int8ConvBytes(layer) / layer.kernel_h;
  const int64_t rows = std::max<int64_t>(1, kChunkBytes / row_bytes);  // of a chunk
  for (Chunk chunk = {0, 0}; chunk.end < layer.kernel_h;) {
    chunk = {chunk.end, std::min<int64_t>(chunk.end + rows, layer.kernel_h)};
    for (int64_t i = 0; i < count; i += kPixels) {
      const int16_t* windows[kPixels];
      int32_t* outs[kPixels];
      for (int p = 0; p < kPixels; ++p) {
        const Int8Pixel& pixel = pixels[std::min(i + p, count - 1)];
        windows[p] = scratch.words.data() + (pixel.window - first);
        outs[p] = pixel.sums;
      }
      const int64_t listed = ListPairs(layer, chunk, in_pitch, windows, &scratch);
      int filter = 0;
      const auto sweep = [&](auto convolve, int vectors) {
        for (; filter + (vectors - 1) * kLanes < filters; filter += vectors * kLanes) {
          convolve(chunk.begin == 0, windows, scratch, listed, words, filter, filters, outs);
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
