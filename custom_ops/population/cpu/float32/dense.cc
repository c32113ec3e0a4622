// Fully connected layers. Rows of weights whose inputs are zero are not read.
//
// With up to 16 slots or few units, the inputs that are not zero in every one of up to 8 slots are listed first, then
// their rows are streamed. With more slots, each slot separately processes a piece of the weights that fits into the L1
// cache, so it can skip its own zeros, which differ between slots, while the next piece is being prefetched.
#include <algorithm>
#include <iterator>

#include "core/simd.h"
#include "population/cpu/float32/epilogue.h"
#include "population/cpu/float32/kernels.h"
#include "population/cpu/scratch.h"

namespace neuroevo {

namespace {

// Rows of weights are processed in panels: all columns of a panel while the next panel is being prefetched. 8 rows were
// the fastest of 8, 16, 32 and 64 in forward_bench.
constexpr int kPanel = 8;
constexpr int kAccumulators = kVectorRegisters / 2;
// Size of a piece of the weights that many slots share: vectors per row, whose sums are in registers, and rows, one bit
// each. Tuned on LargeModel with 32 slots: 16 rows are faster than 32, and half the width is slower.
constexpr int kPieceVectors = kAccumulators;
constexpr int64_t kPieceRows = kLanes == 16 ? 16 : 32;
constexpr int64_t kLine = kCacheLine / sizeof(float);

// Adds rows [0, rows) of a panel to sums of kSlots x (kVectors * kLanes) columns.
template <int kSlots, int kVectors>
void Accumulate(const float* weights, int64_t units, const int32_t* index, const float* in, int64_t in_stride, int rows,
                float* sums, int64_t sums_stride) {
  Floats sum[kSlots][kVectors];
#pragma GCC unroll 8
  for (int s = 0; s < kSlots; ++s) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sum[s][v] = Floats::Load(sums + s * sums_stride + v * kLanes);
  }
  for (int r = 0; r < rows; ++r) {
    const float* row = weights + int64_t{index[r]} * units;
    const float* ahead = weights + int64_t{index[r + kPanel]} * units;
    Floats value[kSlots];
#pragma GCC unroll 8
    for (int s = 0; s < kSlots; ++s) value[s] = Floats(in[s * in_stride + index[r]]);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      // Short vectors are less than a cache line; prefetching a line twice costs almost nothing.
      __builtin_prefetch(ahead + v * kLanes);
      const Floats weight = Floats::Load(row + v * kLanes);
#pragma GCC unroll 8
      for (int s = 0; s < kSlots; ++s) sum[s][v] = Fma(value[s], weight, sum[s][v]);
    }
  }
#pragma GCC unroll 8
  for (int s = 0; s < kSlots; ++s) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sum[s][v].Store(sums + s * sums_stride + v * kLanes);
  }
}

// Lists the inputs that are not zero in every slot; returns their number.
template <int kSlots>
int64_t ListInputs(int64_t inputs, const float* in, int64_t in_stride, int32_t* index) {
  int64_t count = 0;
  for (int64_t i = 0; i < inputs; i += kLanes) {
    LaneMask wanted = 0;
#pragma GCC unroll 8
    for (int s = 0; s < kSlots; ++s) wanted |= NonZero(Floats::Load(in + s * in_stride + i));
    if (inputs - i < kLanes) wanted &= FirstLanes(inputs - i);
    (LanesOf(wanted) + Words(static_cast<uint32_t>(i))).Store(index + count);
    count += __builtin_popcount(wanted);
  }
  // Prefetches look one panel ahead.
  for (int i = 0; i < kPanel; ++i) index[count + i] = count > 0 ? index[count - 1] : 0;
  return count;
}

// Returns a bit mask of the inputs that are not zero, n <= kPieceRows.
uint64_t NonZeroInputs(const float* in, int64_t n) {
  uint64_t wanted = 0;
  for (int64_t i = 0; i < n; i += kLanes) wanted |= static_cast<uint64_t>(NonZero(Floats::Load(in + i))) << i;
  return n < 64 ? wanted & ((uint64_t{1} << n) - 1) : wanted;
}

// Rows of weights to prefetch, some cache lines with every row that is added: prefetching all at once would stall.
struct Ahead {
  const float* rows[kPieceRows];
  int count;
};

// Adds a piece's wanted rows to the sums of kVectors vectors of one slot.
template <int kVectors>
void AddPiece(uint64_t wanted, const float* weights, int64_t units, const float* in, bool begins, float* sums,
              const float* const* ahead, int rows, int64_t column) {
  constexpr int kLines = (kVectors * kLanes + kLine - 1) / kLine;
  Floats sum[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) sum[v] = begins ? Floats(0.0f) : Floats::Load(sums + v * kLanes);
  int line = 0;
  const auto prefetch = [&] {
    for (int r = 0; r < rows; ++r) __builtin_prefetch(ahead[r] + column + line * kLine, 0, 2);
    ++line;
  };
  for (; wanted != 0; wanted &= wanted - 1) {
    const int64_t i = __builtin_ctzll(wanted);
    const float* row = weights + i * units;
    const Floats value(in[i]);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sum[v] = Fma(value, Floats::Load(row + v * kLanes), sum[v]);
    if (line < kLines) prefetch();
  }
  while (line < kLines) prefetch();
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) sum[v].Store(sums + v * kLanes);
}

// Computes the sums of several slots, piece by piece, in columns of kPieceVectors vectors.
void AddPieces(int64_t inputs, int units, const float* weights, int slots, const float* in, int64_t in_stride,
               float* out, int64_t out_stride) {
  const int vectors = (units + kLanes - 1) / kLanes;
  uint64_t wanted[2][kMaxDenseSlots];  // masks of this piece and the next one
  Ahead ahead;
  const auto look = [&](int64_t first, uint64_t* masks) {
    const int64_t rows = std::min(kPieceRows, inputs - first);
    uint64_t any = 0;
    for (int s = 0; s < slots; ++s) any |= masks[s] = rows <= 0 ? 0 : NonZeroInputs(in + s * in_stride + first, rows);
    ahead.count = 0;
    for (; any != 0; any &= any - 1) ahead.rows[ahead.count++] = weights + (first + __builtin_ctzll(any)) * units;
  };
  int v = 0;
  const auto sweep = [&](auto add, int width) {
    for (; v + width <= vectors; v += width) {
      const int64_t column = v * kLanes;
      look(0, wanted[0]);
      for (int64_t first = 0; first < inputs; first += kPieceRows) {
        uint64_t *now = wanted[first / kPieceRows % 2], *next = wanted[(first / kPieceRows + 1) % 2];
        look(first + kPieceRows, next);
        for (int s = 0; s < slots; ++s) {
          const int begin = ahead.count * s / slots, count = ahead.count * (s + 1) / slots - begin;
          add(now[s], weights + first * units + column, units, in + s * in_stride + first, first == 0,
              out + s * out_stride + column, ahead.rows + begin, count, column);
        }
      }
    }
  };
  sweep(AddPiece<kPieceVectors>, kPieceVectors);
  sweep(AddPiece<1>, 1);
}

// Computes the sums of several slots. A row of weights that any slot needs is read once.
template <int kSlots>
void AddRows(int64_t inputs, int units, const float* weights, const float* in, int64_t in_stride, float* out,
             int64_t out_stride, int32_t* index) {
  const int64_t count = ListInputs<kSlots>(inputs, in, in_stride, index);

  const int vectors = (units + kLanes - 1) / kLanes;
  for (int s = 0; s < kSlots; ++s) std::fill_n(out + s * out_stride, vectors * kLanes, 0.0f);
  constexpr int kWide = kAccumulators / kSlots, kNarrow = kWide >= 8 ? 4 : 1;
  for (int64_t r = 0; r < count; r += kPanel) {
    const int rows = static_cast<int>(std::min<int64_t>(kPanel, count - r));
    int v = 0;
    const auto sweep = [&](auto accumulate, int width) {
      for (; v + width <= vectors; v += width) {
        accumulate(weights + v * kLanes, units, index + r, in, in_stride, rows, out + v * kLanes, out_stride);
      }
    };
    sweep(Accumulate<kSlots, kWide>, kWide);
    sweep(Accumulate<kSlots, kNarrow>, kNarrow);
    sweep(Accumulate<kSlots, 1>, 1);
  }
}

}  // namespace

int64_t DenseListSize(int64_t inputs) { return inputs + std::max(kPanel, kLanes); }

void CpuDense(int64_t inputs, int units, const float* weights, const Epilogue* epilogues, int slots, const float* in,
              int64_t in_stride, float* out, int64_t out_stride, int32_t* list) {
  static constexpr decltype(&AddRows<1>) kAddRows[] = {AddRows<1>, AddRows<2>, AddRows<3>, AddRows<4>,
                                                       AddRows<5>, AddRows<6>, AddRows<7>, AddRows<8>};
  constexpr int kMost = static_cast<int>(std::size(kAddRows));
  if (slots > 2 * kMost && units >= kPieceVectors * kLanes) {
    AddPieces(inputs, units, weights, slots, in, in_stride, out, out_stride);
  } else {
    for (int s = 0; s < slots; s += kMost) {
      const int some = std::min(kMost, slots - s);
      kAddRows[some - 1](inputs, units, weights, in + s * in_stride, in_stride, out + s * out_stride, out_stride, list);
    }
  }
  for (int s = 0; s < slots; ++s) {
    const Epilogue& epilogue = epilogues[s];
    float thin[low_rank::kMaxRank];
    for (int q = 0; q < epilogue.rank; ++q) {
      PartialSums sums;
      sums.Add(in + s * in_stride, epilogue.a + q * inputs, inputs);
      thin[q] = Mul(epilogue.factor, sums.Total());
    }
    Finish(epilogue, thin, 1, units, [&](int) { return out + s * out_stride; });
  }
}

}  // namespace neuroevo
