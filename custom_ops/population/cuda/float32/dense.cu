// Dense layers. Rows evaluated by a single position are memory-bound, since each weight is read once and used once.
// Rows evaluated by many positions are matrix products.
#include "population/cuda/float32/tile.h"

namespace neuroevo::cuda {

namespace {

// Each weight is read once: 15.9 MB of LargeModel's 16.2 MB per position, 4 us at an H200's 4 TB/s. Covering 700 to
// 1000 ns of latency takes 3 to 4 MB in flight, 24 to 32 KB per multiprocessor. Each of these blocks has 40 KB of
// weights in flight, and four of them fit on a multiprocessor: the last blocks of a call run alone, at 50 GB/s. 128
// columns are 512 adjacent bytes of every row of weights, enough for efficient memory accesses.
using One = Tile<1, 128, 1, 1, 16, 6>;
using Four = Tile<4, 128, 4, 1, 16, 6>;
// For few positions, four times as many blocks, and for up to 32 units. One warp multiplies, and three more only copy.
// The time is that of dependent multiply-adds, 4 clocks each or 18 us for 7744 of them, plus about 200 clocks of
// overhead per slice, so slices are long.
using OneNarrow = Tile<1, 32, 1, 1, 128, 3, 128>;
// 256 positions of a row and 512 units make 128 blocks, all resident at the same time, with one warp per scheduler:
// eight sums per thread hide the latency of multiply-adds. Four terms take 32 clocks of multiply-adds and 56 of shared
// memory (48 to read, 8 to fill it), and each slice adds about 150 clocks that are not hidden, so slices are long.
using Shared = Tile<32, 32, 2, 4, 64, 3>;
static_assert(One::kItems == kDenseTileSizes[0] && OneNarrow::kItems == kDenseTileSizes[0] &&
                  Four::kItems == kDenseTileSizes[1] && Shared::kItems == kDenseTileSizes[2],
              "");

struct Inputs {
  using Value = float;
  using Place = int;

  const float* const* items;
  int terms;

  __device__ Place Locate(int term) const { return term; }
  __device__ bool At(int item, Place term, const float** at) const {
    *at = items[item] + term;
    return term < terms;
  }
};

template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    Dense(Sums sums, const int32_t* tiles, int64_t first, int64_t positions, unsigned unit_tiles) {
  float* stages = reinterpret_cast<float*>(DynamicShared());
  const float** items = reinterpret_cast<const float**>(stages + T::kStages * T::kStageFloats);
  const int64_t first_position = tiles[first + blockIdx.x / unit_tiles];
  const int first_unit = static_cast<int>(blockIdx.x % unit_tiles) * T::kColumns;
  const int row = sums.rows[first_position];
  const auto plays = [&](int item) {
    const int64_t position = first_position + item;
    return item == 0 || (position < positions && sums.rows[position] == row);
  };
  for (int item = threadIdx.x; item < T::kItems; item += T::kThreads) {
    // Missing items compute the first item again, and the result is discarded.
    items[item] = Of<const float>(sums.in, first_position + (plays(item) ? item : 0));
  }
  __syncthreads();

  const float* theta = sums.thetas + row * sums.stride;
  const int units = min(sums.units - first_unit, T::kColumns);
  const Inputs inputs = {items, sums.terms};
  float sum[T::kThreadItems][T::kThreadColumns];
  TileSums<T, Inputs>(sums, theta + sums.weights + first_unit, units, inputs, stages).Compute(sum);

  const auto out_at = [&](int item) {
    return plays(item) ? Of<float>(sums.out, first_position + item) + first_unit : nullptr;
  };
  StoreTile<T>(sums, theta + first_unit, units, out_at, sum);
}

template <class T>
void LaunchTiles(const Sums& sums, const int32_t* tiles, int64_t count, int64_t positions, device::Stream stream) {
  const unsigned unit_tiles = static_cast<unsigned>(CeilDivide(sums.units, T::kColumns));
  const size_t shared = T::kStagesBytes + T::kItems * sizeof(float*);
  ForGrids(count, unit_tiles, [&](int64_t first, unsigned blocks) {
    Launch(Dense<T>, blocks, T::kThreads, shared, stream, sums, tiles, first, positions, unit_tiles);
  });
}

}  // namespace

void LaunchDense(const Sums& sums, const int32_t* tiles, int64_t count, int size, int64_t positions,
                 int multiprocessors, device::Stream stream) {
  if (size == 2) {
    LaunchTiles<Shared>(sums, tiles, count, positions, stream);
  } else if (size == 1) {
    LaunchTiles<Four>(sums, tiles, count, positions, stream);
  } else if (sums.units <= OneNarrow::kColumns || count * CeilDivide(sums.units, One::kColumns) < multiprocessors) {
    LaunchTiles<OneNarrow>(sums, tiles, count, positions, stream);
  } else {
    LaunchTiles<One>(sums, tiles, count, positions, stream);
  }
}

}  // namespace neuroevo::cuda
