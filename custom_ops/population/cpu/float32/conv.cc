// Convolution: for a block of output pixels and a few vectors of channels, whose sums are in registers, loop over taps.
//
// A tap is a position in the kernel's window: row, column, channel. ReLU and black screens make many inputs zero, often
// in the same channels of neighboring pixels. A block skips the taps that are zero in all of its windows; it finds them
// in the image's marks, 64 taps per word. Screens have large flat areas: if the windows of a pixel and its left
// neighbor are equal, the output is copied. Weights larger than the L1 cache are processed in chunks, each for all
// pixels before the next one; meanwhile, partial sums are stored in the output.
#include <algorithm>

#include "core/simd.h"
#include "networks/vbn.h"
#include "population/cpu/float32/epilogue.h"
#include "population/cpu/float32/kernels.h"

namespace neuroevo {

namespace {

constexpr int kWord = ImageMarks::kWord;
constexpr int64_t kLine = 64 / sizeof(float);  // floats of a cache line

// Largest number of channel vectors per block.
constexpr int kWidest = kVectorRegisters == 32 ? 4 : 8;

// Pixels per block: enough sums to hide the latency of fused multiply-adds and to amortize the loads of weights.
// Smaller blocks multiply fewer zeros that only some of their pixels have, blocks of one pixel none. Tuned with
// forward_bench.
constexpr int BlockPixels(int vectors, bool dense) {
  if (kVectorRegisters == 32) return vectors == 4 ? (dense ? 5 : 3) : vectors == 2 ? (dense ? 10 : 6) : 8;
  return vectors == 8 ? 1 : vectors == 4 ? 3 : vectors == 2 ? (dense ? 6 : 4) : 12;
}

// Bytes of weights per chunk, which stay in the L1 cache while inputs and outputs are streamed.
constexpr int64_t kChunkBytes = kVectorRegisters == 32 ? 48 << 10 : 16 << 10;

// Range of a convolution's words.
struct Chunk {
  const ConvWord *begin, *end;
  bool begins, ends;  // whether the sums start or end with this chunk
};

// Most words per chunk, which bounds the memory for a block's marks.
constexpr int64_t kChunkWords = 16;

// Taps of a chunk at which not all of a block's windows are zero, in order, as marks. All words are read before the
// loop over their marks, so that the next word is in a register when the processor mispredicts the last tap of a word.
class Taps {
 public:
  template <int kPixels>
  void Find(const ConvPixel* pixels, const Chunk& chunk) {
    chunk_ = chunk;
    for (const ConvWord* word = chunk.begin; word < chunk.end; ++word) {
      uint64_t any = 0;
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) any |= ImageMarks::Read(pixels[p].non_zero + word->marks);
      wanted_[word - chunk.begin] = any & word->taps;
    }
  }

  // Calls body(offset in a window, weights) for each tap.
  template <class Body>
  __attribute__((always_inline)) void ForEach(const float* weights, int64_t filters, const Body& body) const {
    const int64_t words = chunk_.end - chunk_.begin;
    for (int64_t w = 0; w < words; ++w) {
      const int64_t first = chunk_.begin[w].place;
      const float* rows = weights + chunk_.begin[w].weights;
      for (uint64_t left = wanted_[w]; left != 0; left &= left - 1) {
        const int64_t i = __builtin_ctzll(left);
        body(first + i, rows + i * filters);
      }
    }
  }

 private:
  Chunk chunk_;
  uint64_t wanted_[kChunkWords];
};

// Adds a chunk's taps to kPixels x (kVectors * kLanes) outputs, starting at `channel`. If this were inlined, GCC 12
// would run out of registers and keep weights in memory.
template <int kPixels, int kVectors>
__attribute__((noinline)) void Convolve(const ConvPixel* pixels, const Chunk& chunk, const Taps& taps,
                                        const float* weights, int64_t filters, const Epilogue& epilogue, int channel) {
  const float* window[kPixels];
  Floats sum[kPixels][kVectors];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
    window[p] = pixels[p].window;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sum[p][v] = chunk.begins ? Floats(0.0f) : Floats::Load(pixels[p].out + channel + v * kLanes);
    }
  }
  taps.ForEach(weights + channel, filters, [&](int64_t place, const float* row) {
    // With few registers, keep the smaller of the two operands in registers.
    if constexpr (kVectorRegisters == 16 && kPixels < kVectors) {
      Floats value[kPixels];
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) value[p] = Floats(window[p][place]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Floats weight = Floats::Load(row + v * kLanes);
#pragma GCC unroll 16
        for (int p = 0; p < kPixels; ++p) sum[p][v] = Fma(value[p], weight, sum[p][v]);
      }
    } else {
      Floats weight[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) weight[v] = Floats::Load(row + v * kLanes);
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const Floats value(window[p][place]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sum[p][v] = Fma(value, weight[v], sum[p][v]);
      }
    }
  });
  if (!chunk.ends && channel + kVectors * kLanes <= filters) {  // partial sums, all of them
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[p][v].Store(pixels[p].out + channel + v * kLanes);
    }
    return;
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t first = channel + v * kLanes;
    const int lanes = static_cast<int>(std::min<int64_t>(kLanes, filters - first));
    const bool normalizes = chunk.ends && epilogue.means != nullptr, biases = chunk.ends && epilogue.bias != nullptr;
    const bool relu = chunk.ends && epilogue.relu;
    const Floats mean = normalizes ? Floats::Load(epilogue.means + first) : Floats(0.0f);
    const Floats factor = normalizes ? Floats::Load(epilogue.factors + first) : Floats(1.0f);
    const Floats bias = biases ? Floats::Load(epilogue.bias + first) : Floats(0.0f);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      Floats value = WithoutMinusZero(sum[p][v]);
      if (normalizes) value = vbn::Normalized(value, mean, factor);
      if (biases) value = Add(value, bias);
      if (relu) value = Relu(value);
      value.StorePartial(pixels[p].out + first, lanes);
    }
  }
}

// Computes all pixels, in blocks sized for kVectors vectors. The last pixel must be followed by enough copies of it to
// complete the last block.
template <int kVectors, bool kDense>
void ConvolveAll(const std::vector<ConvWord>& words, const float* weights, int64_t filters, const Epilogue& epilogue,
                 const ConvPixel* pixels, int64_t count) {
  constexpr int kPixels = BlockPixels(kVectors, kDense);
  static_assert(kPixels <= kMostBlockPixels, "");
  const ConvWord *const first = words.data(), *const last = first + words.size() - 1;  // the last word is a sentinel
  Taps taps;
  for (Chunk chunk = {first, first, false, false}; chunk.end < last;) {
    const auto end_of = [&](const ConvWord* begin) {
      const ConvWord* end = begin + 1;
      while (end < last && end - begin < kChunkWords &&
             (end[1].weights - begin->weights) * static_cast<int64_t>(sizeof(float)) <= kChunkBytes) {
        ++end;
      }
      return std::min(end, last);
    };
    chunk.begin = chunk.end;
    chunk.end = end_of(chunk.begin);
    chunk.begins = chunk.begin == first;
    chunk.ends = chunk.end == last;
    // Meanwhile prefetch the next chunk, a few cache lines per block.
    const float *next = weights + chunk.end->weights, *next_end = weights + end_of(chunk.end)->weights;
    const int64_t ahead = ((next_end - next) * kPixels / count / kLine + 1) * kLine;
    for (int64_t i = 0; i < count; i += kPixels) {
      for (const float* end = std::min(next_end, next + ahead); next < end; next += kLine) __builtin_prefetch(next);
      taps.Find<kPixels>(pixels + i, chunk);
      int channel = 0;
      const auto sweep = [&](auto convolve, int vectors) {
        for (; channel + (vectors - 1) * kLanes < filters; channel += vectors * kLanes) {
          convolve(pixels + i, chunk, taps, weights, filters, epilogue, channel);
        }
      };
      sweep(Convolve<kPixels, kVectors>, kVectors);
      if constexpr (kVectors > 2) sweep(Convolve<kPixels, 2>, 2);
      if constexpr (kVectors > 1) sweep(Convolve<kPixels, 1>, 1);
    }
  }
}

// Computes the dot products of kPlaces pixels' windows with a row of A.
template <int kPlaces>
void Dots(const Layer& layer, const float* a, int64_t in_pitch, const ConvPixel* pixels, std::vector<float>* copy,
          float* dots) {
  const int64_t row_taps = int64_t{layer.kernel_w} * layer.in[2], n = layer.inputs();
  PartialSums sums[kPlaces];
  const float* in[kPlaces];
  if (row_taps % PartialSums::kSums == 0) {
    for (int kh = 0; kh < layer.kernel_h; ++kh) {
      for (int p = 0; p < kPlaces; ++p) in[p] = pixels[p].window + kh * in_pitch;
      PartialSums::Add(in, a + kh * row_taps, row_taps, sums);
    }
  } else {
    copy->resize(n);
    for (int p = 0; p < kPlaces; ++p) {
      for (int kh = 0; kh < layer.kernel_h; ++kh) {
        std::copy_n(pixels[p].window + kh * in_pitch, row_taps, copy->data() + kh * row_taps);
      }
      sums[p].Add(copy->data(), a, n);
    }
  }
  for (int p = 0; p < kPlaces; ++p) dots[p] = sums[p].Total();
}

// Finishes the sums of a member's pixels: adds the contribution of its factors, then applies the epilogue.
void FinishMember(const Layer& layer, const Epilogue& epilogue, int64_t in_pitch, const ConvPixel* pixels,
                  int64_t count, std::vector<float>* copy) {
  constexpr int kPlaces = kVectorRegisters / 4;
  float thin[low_rank::kMaxRank * kPlaces];
  const auto finish = [&](const ConvPixel* some, int places, auto dots) {
    for (int q = 0; q < epilogue.rank; ++q) {
      dots(layer, epilogue.a + q * layer.inputs(), in_pitch, some, copy, thin + q * places);
      for (int p = 0; p < places; ++p) thin[q * places + p] = Mul(epilogue.factor, thin[q * places + p]);
    }
    Finish(epilogue, thin, places, layer.out[2], [&](int p) { return some[p].out; });
  };
  int64_t i = 0;
  for (; i + kPlaces <= count; i += kPlaces) finish(pixels + i, kPlaces, Dots<kPlaces>);
  for (; i < count; ++i) finish(pixels + i, 1, Dots<1>);
}

}  // namespace

void ConvMarks::Set(const Layer& layer, const float* weights, const float* in, int64_t in_pitch,
                    const Changes* changes) {
  const int64_t rows = RowsRead(layer), step = int64_t{layer.stride} * layer.in[2];
  if (changes == nullptr) {
    non_zero.Reset(rows, (layer.out[1] - 1) * step + int64_t{layer.kernel_w} * layer.in[2], step);
    counts.assign(rows, 0);
    count = 0;
  }
  const int64_t ahead = std::min<int64_t>(layer.weights, kChunkBytes / sizeof(float)) / rows + 1;
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t i = 0; i < ahead; i += kLine) __builtin_prefetch(weights + y * ahead + i);
    const int64_t image_y = y - layer.pad_top;
    if (changes != nullptr && (image_y < 0 || image_y >= layer.in[0] || !changes->RowChanged(image_y))) continue;
    const float* row = in + y * in_pitch;
    count -= counts[y];
    counts[y] = non_zero.SetRow(y, [&](int64_t i) { return NonZero(Floats::Load(row + i)); });
    count += counts[y];
  }
}

void CpuConv(const Layer& layer, const float* weights, const Epilogue& epilogue, const float* in, int64_t in_pitch,
             const ConvMarks& marks, const std::vector<int64_t>* places, bool flat, float* out, int64_t out_pitch,
             ConvScratch* scratch) {
  const int height = layer.out[0], width = layer.out[1], filters = layer.out[2];
  const int64_t row_taps = int64_t{layer.kernel_w} * layer.in[2];
  const int64_t step = int64_t{layer.stride} * layer.in[2];
  const int64_t in_rows = ConvMarks::RowsRead(layer), in_values = (width - 1) * step + row_taps;
  const ImageMarks& non_zero = marks.non_zero;
  ImageMarks& differs = scratch->differs;
  // Use larger blocks if few values are zero or the weights do not fit into the L1 cache.
  const bool dense = 3 * marks.count > 2 * in_rows * in_values || kWord * filters * sizeof(float) > kChunkBytes;
  const bool finds_copies = flat && width > 1 && places == nullptr;
  if (finds_copies) {
    differs.Reset(in_rows, in_values - step, 8);
    for (int64_t y = 0; y < in_rows; ++y) {
      const float* row = in + y * in_pitch;
      differs.SetRow(
          y, [&](int64_t i) { return AnyBit(ToBits(Floats::Load(row + i)) ^ ToBits(Floats::Load(row + i + step))); });
    }
  }
  // Both lists are written without a branch, which would be mispredicted half of the time.
  const size_t most = static_cast<size_t>(height) * width + kMostBlockPixels;
  if (scratch->copies.size() < most) {  // grown last, so pixels is large enough if copies is
    scratch->pixels.resize(most);
    scratch->copies.resize(most);
  }
  ConvPixel* pixel = scratch->pixels.data();
  float** copy = scratch->copies.data();
  const auto pixel_at = [&](int64_t y, int64_t x) {
    const int64_t in_y = y * layer.stride;
    return ConvPixel{in + in_y * in_pitch + x * step, non_zero.At(in_y, x * step), out + y * out_pitch + x * filters};
  };
  if (places != nullptr) {
    for (const int64_t place : *places) *pixel++ = pixel_at(place / width, place % width);
    if (places->empty()) return;
  } else {
    for (int y = 0; y < height; ++y) {
      if (finds_copies) differs.Join(int64_t{y} * layer.stride, layer.kernel_h);
      for (int x = 0; x < width; ++x) {
        const bool copied = finds_copies && x > 0 && !differs.AnyJoined((x - 1) * step, row_taps);
        *pixel = pixel_at(y, x);
        *copy = pixel->out;
        pixel += !copied;
        copy += copied;
      }
    }
  }
  const ConvPixel* pixels = scratch->pixels.data();
  const int64_t count = pixel - pixels;
  std::fill_n(pixel, kMostBlockPixels - 1, pixel[-1]);
  std::vector<ConvWord>& words = scratch->words;
  words.clear();
  for (int64_t kh = 0; kh < layer.kernel_h; ++kh) {
    for (int64_t tap = 0; tap < row_taps; tap += kWord) {
      words.push_back({kh * in_pitch + tap, (kh * row_taps + tap) * filters, kh * non_zero.pitch() + tap / 8,
                       ImageMarks::FirstOf(row_taps - tap)});
    }
  }
  words.push_back({0, layer.weights, 0, 0});
  const bool member = epilogue.rank > 0;
  const auto convolve_all = [&](auto sparse_one, auto dense_one) {
    (dense ? dense_one : sparse_one)(words, weights, filters, member ? Epilogue() : epilogue, pixels, count);
  };
  if (kWidest == 8 && filters > 7 * kLanes) {
    convolve_all(ConvolveAll<kWidest, false>, ConvolveAll<kWidest, true>);
  } else if (filters > 3 * kLanes) {
    convolve_all(ConvolveAll<4, false>, ConvolveAll<4, true>);
  } else if (filters > kLanes) {
    convolve_all(ConvolveAll<2, false>, ConvolveAll<2, true>);
  } else {
    convolve_all(ConvolveAll<1, false>, ConvolveAll<1, true>);
  }
  if (member) FinishMember(layer, epilogue, in_pitch, pixels, count, &scratch->window_copy);
  for (float** to = scratch->copies.data(); to < copy; ++to) {
    for (int first = 0; first < filters; first += kLanes) {
      Floats::Load(*to - filters + first).StorePartial(*to + first, std::min(kLanes, filters - first));
    }
  }
}

}  // namespace neuroevo
