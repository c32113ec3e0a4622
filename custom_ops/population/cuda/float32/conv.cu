// Convolutions: for each position of the call, a product of [output pixels, terms] and [terms, filters]. The left side
// is gathered from the image, not materialized. Terms are the kernel's rows, columns and channels, in this order.
#include "population/cuda/float32/tile.h"

namespace neuroevo::cuda {

namespace {

// LargeModel takes 12.0 million multiply-adds per position, 0.36 us on an H200 at its peak. 8 x 8 sums per thread need
// the fewest shared-memory words per sum. Two or three such warps per scheduler hide the latency, since a slice keeps a
// warp busy for 1000 clocks, about the latency of device memory.
using Many64 = Tile<64, 64, 8, 8, 16, 3>;
using Many32 = Tile<64, 32, 8, 8, 16, 2>;  // up to 32 filters; twelve blocks of one warp per multiprocessor
// Few positions must be spread over the GPU: 16 to 28 blocks per position, and one warp per scheduler with four sums
// per thread. A slice takes 350 clocks of arithmetic and 250 clocks, not hidden by other warps, to locate and request
// the next slice's inputs, so slices are long.
using Few = Tile<16, 32, 2, 2, 64, 3>;

constexpr int kNowhere = -(1 << 29);  // row outside of every image, even after adding an offset

struct ConvShape {
  int height, width, channels;  // of the image
  int kernel_w, stride, pad_top, pad_left;
  int out_width, pixels;  // of the output
  int pixel_tiles, filter_tiles;
};

template <class T>
struct Image {
  using Value = T;
  struct Place {  // in a window
    int row, column;
    int offset;  // in values, in the image's layout
  };

  const Value* values;
  const int4* corners;  // of the items' windows in the image: row, column and offset
  const ConvShape& shape;
  int terms;

  __device__ Place Locate(int term) const {
    const int in_row = shape.kernel_w * shape.channels, row = term / in_row, rest = term % in_row;
    if (term >= terms) return {kNowhere, 0, 0};
    return {row, rest / shape.channels, row * shape.width * shape.channels + rest};
  }
  __device__ bool At(int item, Place place, const Value** at) const {
    const int4 corner = corners[item];
    *at = values + (corner.z + place.offset);
    const bool row_inside = static_cast<unsigned>(corner.x + place.row) < static_cast<unsigned>(shape.height);
    const bool column_inside = static_cast<unsigned>(corner.y + place.column) < static_cast<unsigned>(shape.width);
    return row_inside & column_inside;
  }
};

template <class T, class Value>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks) Conv(Sums sums, ConvShape shape, int64_t first) {
  float* stages = reinterpret_cast<float*>(DynamicShared());
  int4* corners = reinterpret_cast<int4*>(stages + T::kStages * T::kStageFloats);
  const unsigned tiles = shape.pixel_tiles * shape.filter_tiles, tile = blockIdx.x % tiles;
  const int64_t position = first + blockIdx.x / tiles;
  const int first_filter = static_cast<int>(tile % shape.filter_tiles) * T::kColumns;
  const int first_pixel = static_cast<int>(tile / shape.filter_tiles) * T::kItems;
  for (int item = threadIdx.x; item < T::kItems; item += T::kThreads) {
    const int pixel = min(first_pixel + item, shape.pixels - 1);
    const int row = pixel / shape.out_width * shape.stride - shape.pad_top;
    const int column = pixel % shape.out_width * shape.stride - shape.pad_left;
    const int offset = (row * shape.width + column) * shape.channels;
    corners[item] =
        first_pixel + item < shape.pixels ? make_int4(row, column, offset, 0) : make_int4(kNowhere, 0, 0, 0);
  }
  __syncthreads();

  const float* theta = sums.thetas + sums.rows[position] * sums.stride;
  const int filters = min(sums.units - first_filter, T::kColumns);
  const Image<Value> image = {Of<const Value>(sums.in, position), corners, shape, sums.terms};
  float sum[T::kThreadItems][T::kThreadColumns];
  TileSums<T, Image<Value>>(sums, theta + sums.weights + first_filter, filters, image, stages).Compute(sum);

  float* out = Of<float>(sums.out, position) + first_filter;
  const auto out_at = [&](int item) {
    return first_pixel + item < shape.pixels ? out + int64_t{first_pixel + item} * sums.units : nullptr;
  };
  StoreTile<T>(sums, theta + first_filter, filters, out_at, sum);
}

template <class T>
void LaunchTiles(const Sums& sums, ConvShape shape, int64_t count, device::Stream stream) {
  shape.pixel_tiles = static_cast<int>(CeilDivide(shape.pixels, T::kItems));
  shape.filter_tiles = static_cast<int>(CeilDivide(sums.units, T::kColumns));
  const int64_t tiles = int64_t{shape.pixel_tiles} * shape.filter_tiles;
  const size_t shared = T::kStagesBytes + T::kItems * sizeof(int4);
  ForGrids(count, tiles, [&](int64_t first, unsigned blocks) {
    const auto kernel = sums.in.bytes ? Conv<T, uint8_t> : Conv<T, float>;
    Launch(kernel, blocks, T::kThreads, shared, stream, sums, shape, first);
  });
}

}  // namespace

void LaunchConv(const Sums& sums, const Layer& layer, int64_t count, int multiprocessors, device::Stream stream) {
  ConvShape shape = {};
  shape.height = layer.in[0];
  shape.width = layer.in[1];
  shape.channels = layer.in[2];
  shape.kernel_w = layer.kernel_w;
  shape.stride = layer.stride;
  shape.pad_top = layer.pad_top;
  shape.pad_left = layer.pad_left;
  shape.out_width = layer.out[1];
  shape.pixels = layer.out[0] * layer.out[1];
  const bool narrow = sums.units <= Many32::kColumns;
  const int64_t many_tiles = count * CeilDivide(shape.pixels, Many64::kItems) *
                             CeilDivide(sums.units, narrow ? Many32::kColumns : Many64::kColumns);
  // Small tiles reach a third of the large tiles' throughput; large tiles pay from 0.75 tiles per multiprocessor on.
  if (4 * many_tiles < 3 * multiprocessors) {
    LaunchTiles<Few>(sums, shape, count, stream);
  } else if (narrow) {
    LaunchTiles<Many32>(sums, shape, count, stream);
  } else {
    LaunchTiles<Many64>(sums, shape, count, stream);
  }
}

}  // namespace neuroevo::cuda
