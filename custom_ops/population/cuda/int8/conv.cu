// Convolutions of integer networks on the tensor cores: 16 pixels times 8 filters times 32 products per instruction.
//
// The three convolutions of LargeModel take 12.4M products per slot: at a quarter of the tensor cores' peak, K = 1024
// slots take 0.05 ms, while four products per instruction (dp4a) would take 0.25 ms at best. Staging in shared memory
// is therefore unnecessary: lanes read the words of their pixels and filters from global memory, 16 bytes per load if
// possible. A slot's weights of a layer (8 to 37 KB) and its input stay in the L1 cache for the warps of a block.
#include "gpu/runtime.h"
#include "population/cuda/int8/kernels.h"
#include "population/cuda/int8/sums.h"

namespace neuroevo::cuda {

namespace {

constexpr int kWarps = 4;    // per block, each with different pixels
constexpr int kPixels = 32;  // per warp: two instructions high
constexpr int kRows = kPixels / 8;
constexpr int kTiles = kConvFilters / 8;

// The pixels of a lane: pixel `lane / 4 + 8 * row` of the warp for each row.
struct Pixels {
  int top[kRows], left[kRows];  // upper left corner of the window in the input
  int place[kRows];             // first word of the window
};

// Loads segment `segment`, four words that belong to one tap, of every pixel.
__device__ inline void LoadSegments(const Int8Layer& layer, const uint32_t* input, const Pixels& pixels, int segment,
                                    uint4 (&loaded)[kRows]) {
  const int tap = layer.pixel_segments(segment), y = layer.kernel_width(tap), x = tap - y * layer.kernel_w;
  const int part = segment - tap * (layer.in_words / 4);
  const int place = (y * layer.in_width + x) * layer.in_words + 4 * part;
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const bool inside = y < layer.kernel_h && static_cast<unsigned>(pixels.top[row] + y) < unsigned(layer.in_height) &&
                        static_cast<unsigned>(pixels.left[row] + x) < unsigned(layer.in_width);
    loaded[row] = make_uint4(0, 0, 0, 0);
    if (inside) loaded[row] = __ldg(reinterpret_cast<const uint4*>(input + pixels.place[row] + place));
  }
}

// Loads a segment word by word; the words may belong to different taps.
__device__ inline void LoadWords(const Int8Layer& layer, const uint32_t* input, const Pixels& pixels, int segment,
                                 uint4 (&loaded)[kRows]) {
  uint32_t words[kRows][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int word = 4 * segment + i;
    const int tap = layer.pixel_words(word), y = layer.kernel_width(tap), x = tap - y * layer.kernel_w;
    const int place = (y * layer.in_width + x) * layer.in_words + word - tap * layer.in_words;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const bool inside = y < layer.kernel_h &&
                          static_cast<unsigned>(pixels.top[row] + y) < unsigned(layer.in_height) &&
                          static_cast<unsigned>(pixels.left[row] + x) < unsigned(layer.in_width);
      words[row][i] = inside ? __ldg(input + pixels.place[row] + place) : 0;
    }
  }
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    loaded[row] = make_uint4(words[row][0], words[row][1], words[row][2], words[row][3]);
  }
}

// Each warp computes kPixels pixels times kConvFilters filters of one slot. kSegments: in_words is a multiple of 4.
// kLast: this is the last layer, which writes outputs.
template <bool kSegments, bool kLast>
__global__ __launch_bounds__(32 * kWarps, 4) void Int8Conv(Int8Layer layer, Int8Call call, int64_t first_position) {
  const int filter_tiles = (layer.outputs + kConvFilters - 1) / kConvFilters;
  const int pixel_tiles = (layer.pixels + kWarps * kPixels - 1) / (kWarps * kPixels);
  const int tile = static_cast<int>(blockIdx.x % (unsigned(filter_tiles) * pixel_tiles));
  const int64_t position = first_position + blockIdx.x / (unsigned(filter_tiles) * pixel_tiles);
  const int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
  const int first_filter = tile % filter_tiles * kConvFilters;
  const int first_pixel = (tile / filter_tiles * kWarps + static_cast<int>(threadIdx.x) / 32) * kPixels;
  if (first_pixel >= layer.pixels) return;

  const char* row = RowOf(call, position);
  const uint32_t* input = InputOf(layer, call, position);
  Pixels pixels;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int pixel = min(first_pixel + group + 8 * r, layer.pixels - 1);  // sums of duplicates are not stored
    const int y = pixel / layer.out_width;
    pixels.top[r] = y * layer.stride - layer.pad_top;
    pixels.left[r] = (pixel - y * layer.out_width) * layer.stride - layer.pad_left;
    pixels.place[r] = (pixels.top[r] * layer.in_width + pixels.left[r]) * layer.in_words;
  }
  // The order of products does not matter: each lane loads 16 adjacent ones of the 64 products of an iteration.
  int32_t sums[2][kTiles][4] = {};
  const uint4* weights = reinterpret_cast<const uint4*>(row + layer.weights_place) +
                         int64_t{first_filter + group} * layer.segments + member;
  for (int segment = member; segment < layer.segments; segment += 4, weights += 4) {
    uint4 a[kRows], b[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) b[tile] = __ldg(weights + tile * 8 * layer.segments);
    if (kSegments) {
      LoadSegments(layer, input, pixels, segment, a);
    } else {
      LoadWords(layer, input, pixels, segment, a);
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 &upper = a[2 * half], &lower = a[2 * half + 1];
        MultiplyBytes({upper.x, lower.x, upper.y, lower.y}, {b[tile].x, b[tile].y}, sums[half][tile]);
        MultiplyBytes({upper.z, lower.z, upper.w, lower.w}, {b[tile].z, b[tile].w}, sums[half][tile]);
      }
    }
  }

  const int exponent = ExponentOf(layer, call, position);
  const int32_t own_bias = BiasOf(layer, row, first_filter + lane, exponent);
  int32_t bias[kTiles][2], largest = 0;
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i) {
    bias[i / 2][i % 2] = __shfl_sync(0xffffffffu, own_bias, i / 2 * 8 + 2 * member + i % 2);
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const int filter = first_filter + 8 * tile + 2 * member;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int pixel = first_pixel + group + 8 * r;
      if (pixel >= layer.pixels || filter >= layer.padded_outputs()) continue;
      const int2 sum = {sums[r / 2][tile][r % 2 * 2] + bias[tile][0], sums[r / 2][tile][r % 2 * 2 + 1] + bias[tile][1]};
      if constexpr (kLast) {
        float* outputs = call.outputs + (int64_t{call.slots[position]} * layer.pixels + pixel) * layer.outputs + filter;
        if (filter < layer.outputs) outputs[0] = OutputOf(layer, sum.x, exponent);
        if (filter + 1 < layer.outputs) outputs[1] = OutputOf(layer, sum.y, exponent);
      } else {
        int32_t* slot_sums = call.sums + 4 * position * layer.out_words();
        *reinterpret_cast<int2*>(slot_sums + int64_t{pixel} * layer.padded_outputs() + filter) = sum;
        largest = max(largest, max(sum.x, sum.y));
      }
    }
  }
  if constexpr (!kLast) {
    largest = LargestOf(largest, 32);
    if (lane == 0) atomicMax(call.largest + position, largest);
  }
}

}  // namespace

void SumConv(const Int8Layer& layer, const Int8Call& call, int64_t count, device::Stream stream) {
  const int64_t filter_tiles = (layer.outputs + kConvFilters - 1) / kConvFilters;
  const int64_t tiles = filter_tiles * ((layer.pixels + kWarps * kPixels - 1) / (kWarps * kPixels));
  const bool segments = layer.in_words % 4 == 0, last = call.outputs != nullptr;
  const auto kernel = segments ? (last ? Int8Conv<true, true> : Int8Conv<true, false>)
                               : (last ? Int8Conv<false, true> : Int8Conv<false, false>);
  ForGrids(count, tiles, [&](int64_t first, unsigned blocks) {
    Launch(kernel, dim3(blocks), dim3(32 * kWarps), 0, stream, layer, call, first);
  });
}

}  // namespace neuroevo::cuda
