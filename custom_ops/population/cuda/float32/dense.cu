// Dense layers. Rows that one position plays are bound by memory: a weight is read once and used once. Rows that many
// positions play are matrix products.
#include "population/cuda/float32/tile.h"

namespace neuroevo::cuda {

namespace {

// A weight is read once: 15.9 MB of LargeModel's 16.2 MB a position, 4 us at an H200's 4 TB/s. That takes 3 to 4 MB
// under way to cover 700 to 1000 ns of latency, 24 to 32 KB per multiprocessor. Each of these blocks has 40 KB of
// weights under way, and four of them fit on a multiprocessor: those that are last in a call run alone, at 50 GB/s. 128
// columns are 512 adjacent bytes of every row of weights, enough for the memory to be efficient.
using One = Tile<1, 128, 1, 1, 16, 6>;
using Four = Tile<4, 128, 4, 1, 16, 6>;
// For few positions four times as many blocks, and for up to 32 units. One warp multiplies, three help it to copy; the
// time is that of dependent multiply-adds, 4 clocks each and 18 us for 7744 of them, and of some 200 clocks more for
// each slice, which nothing hides: slices are long.
using OneNarrow = Tile<1, 32, 1, 1, 128, 3, 128>;
// 256 positions of a row and 512 units are 128 blocks, all that there is to be done at once, and one warp per
// scheduler: eight sums a thread hide the multiply-adds' latency. Four terms are 32 clocks of multiply-adds and 56 of
// shared memory (48 to read, 8 to fill it), and each slice costs some 150 more that nothing hides: slices are long.
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
    // In place of missing items the first one is computed once more and thrown away.
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
