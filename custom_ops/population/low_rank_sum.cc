#include "population/low_rank_sum.h"

#include <algorithm>
#include <cmath>

#include "core/noise.h"
#include "core/simd.h"
#include "networks/low_rank.h"

namespace neuroevo {

namespace {

constexpr int64_t kBlockFloats = int64_t{1} << 21;  // noise of the members of a block: 8 MB
constexpr int kRows = 4;                            // matrix rows per tile, whose sums are in registers
constexpr int kHalf = kLanes / 2;                   // doubles per vector
constexpr int kVectors = 2;                         // vectors per row of a tile
constexpr int64_t kTaskRows = 32;

// Loads a single vector: GCC 12 copies an array of vectors through memory in halves.
RawDoubles Load(const double* p) {
  RawDoubles v;
  memcpy(&v, p, sizeof(v));
  return v;
}

// Block of members with the noise of all their layers.
struct Block {
  std::vector<float> noise;  // [members, F]
  int64_t size;              // F
  const float* weights;      // [members]
  int64_t members;

  const float* Of(int64_t member) const { return noise.data() + member * size; }
};

// Adds the products of a block to the sums of kCount rows and kVectors * kHalf columns (fewer at the matrix edge).
// left: [members * rank, kRows], u * A of these rows; right: [members * rank, kVectors * kHalf], B of these columns.
template <int kCount>
void AddTile(const double* left, const double* right, int64_t terms, int64_t columns, double* sums, int64_t n) {
  RawDoubles sum[kCount][kVectors];
  double padded[kCount][kVectors * kHalf] = {};
  for (int i = 0; i < kCount; ++i) std::copy_n(sums + i * n, columns, padded[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[i][v] = Load(padded[i] + v * kHalf);
  }
  for (int64_t t = 0; t < terms; ++t) {
    RawDoubles b[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) b[v] = Load(right + (t * kVectors + v) * kHalf);
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) {
      const RawDoubles a = left[t * kRows + i] - RawDoubles{};  // in all lanes
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] += a * b[v];
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) memcpy(padded[i] + v * kHalf, &sum[i][v], sizeof(RawDoubles));
    std::copy_n(padded[i], columns, sums + i * n);
  }
}

// Returns B of a block's members as doubles, by column tile: [tiles, members * rank, kVectors * kHalf], padded with
// zeros after the last column.
std::vector<double> RightSide(const Layer& layer, const Block& block) {
  constexpr int64_t kColumns = kVectors * kHalf;
  const int64_t n = layer.out[2], tiles = (n + kColumns - 1) / kColumns, terms = block.members * layer.rank;
  std::vector<double> right(tiles * terms * kColumns, 0.0);
  for (int64_t t = 0; t < terms; ++t) {
    const float* b = block.Of(t / layer.rank) + layer.factors + layer.rank * layer.inputs() + t % layer.rank * n;
    for (int64_t j = 0; j < n; ++j) right[(j / kColumns * terms + t) * kColumns + j % kColumns] = b[j];
  }
  return right;
}

// Adds the products of a block to rows [first, last) of a matrix's sums.
void AddRows(const Layer& layer, const Block& block, const std::vector<double>& right, int64_t first, int64_t last,
             double* sums) {
  constexpr int64_t kColumns = kVectors * kHalf;
  const int64_t m = layer.inputs(), n = layer.out[2], terms = block.members * layer.rank;
  const double root = std::sqrt(static_cast<double>(layer.rank));
  std::vector<double> left(terms * kRows);
  for (int64_t row = first; row < last; row += kRows) {
    const int64_t count = std::min<int64_t>(kRows, last - row);
    for (int64_t t = 0; t < terms; ++t) {
      const float* a = block.Of(t / layer.rank) + layer.factors + t % layer.rank * m + row;
      const double u = block.weights[t / layer.rank] / root;
      for (int64_t i = 0; i < count; ++i) left[t * kRows + i] = static_cast<float>(u * a[i]);
    }
    for (int64_t column = 0; column < n; column += kColumns) {
      const double* b = right.data() + column / kColumns * terms * kColumns;
      double* tile = sums + layer.offset + row * n + column;
      const int64_t columns = std::min(kColumns, n - column);
      if (count == kRows) {
        AddTile<kRows>(left.data(), b, terms, columns, tile, n);
      } else {
        for (int64_t i = 0; i < count; ++i) AddTile<1>(left.data() + i, b, terms, columns, tile + i * n, n);
      }
    }
  }
}

}  // namespace

void AddLowRankNoise(const Network& network, int rank, const NoiseTerms& terms, ThreadPool* pool, double* sums) {
  const std::vector<Layer> layers = network.member_layers(rank);
  const int64_t all = static_cast<int64_t>(terms.seeds.size());
  Block block;
  block.size = network.factors(rank);
  const int64_t at_once = std::clamp<int64_t>(kBlockFloats / block.size, 1, 256);
  for (int64_t begin = 0; begin < all; begin += at_once) {
    block.members = std::min(at_once, all - begin);
    block.weights = terms.weights.data() + begin;
    block.noise.resize(block.members * block.size);
    pool->ParallelFor(block.members, [&](int64_t i) {
      FillNoise(terms.seeds[begin + i], 0, block.size, block.noise.data() + i * block.size);
    });
    for (size_t l = 0; l < layers.size(); ++l) {
      const Layer& layer = layers[l];
      if (layer.matrix()) {
        const std::vector<double> right = RightSide(layer, block);
        const int64_t rows = layer.inputs();
        pool->ParallelFor((rows + kTaskRows - 1) / kTaskRows, [&](int64_t task) {
          AddRows(layer, block, right, task * kTaskRows, std::min(rows, (task + 1) * kTaskRows), sums);
        });
        continue;
      }
      double* own = sums + network.layers()[l].offset;
      for (int64_t i = 0; i < block.members; ++i) {
        const float* values = block.Of(i) + layer.offset;
        for (int64_t j = 0; j < layer.weights; ++j) own[j] += double{block.weights[i]} * double{values[j]};
      }
    }
  }
}

}  // namespace neuroevo
