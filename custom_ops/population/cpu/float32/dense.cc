// Fully connected layers. Rows of weights whose inputs are zero are not read.
//
// With up to 16 slots or few units, the inputs that are not zero in every one of up to 8 slots are listed first, then
// their rows are streamed: in panels, or, for one slot and few registers, several whole rows together. With more slots,
// each slot separately processes a piece of the weights that fits into the L1 cache, so it can skip its own zeros,
// which differ between slots, while the next piece is being prefetched.
//
// Products are added in the order of the inputs. If a slot's inputs equal those of its last step up to some input, the
// sums up to there are therefore the same, bit by bit, and the rows before it are not read again.
#include <algorithm>
#include <iterator>
#include <vector>

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
// With 16 registers, only the sums of a few columns fit, and a panel reads pieces of rows that are too short for the
// processor's own prefetching. For one slot, several whole rows are therefore read together, each as a stream. 12 were
// the fastest of 8 to 32 rows on Zen 3, whose prefetcher follows fewer than 20.
constexpr int kStreams = 12;
// Rows of one slot after which its sums are kept: a multiple of the rows that are added together.
constexpr int64_t kKeptRows = 20 * (kVectorRegisters == 16 ? kStreams : kPanel);
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

// Adds kRows rows of weights to the sums of all columns, which are in the L1 cache.
template <int kRows>
void AddTogether(const float* weights, int64_t units, const int32_t* index, const float* in, int vectors, float* sums) {
  const float* row[kRows];
  Floats value[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    row[r] = weights + int64_t{index[r]} * units;
    value[r] = Floats(in[index[r]]);
  }
  for (int64_t i = 0; i < int64_t{vectors} * kLanes; i += kLanes) {
    Floats sum = Floats::Load(sums + i);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) sum = Fma(value[r], Floats::Load(row[r] + i), sum);
    sum.Store(sums + i);
  }
}

// Adds `count` listed rows of weights to the sums of several slots, panel by panel.
template <int kSlots>
void AddPanels(int units, const float* weights, const int32_t* index, int64_t count, const float* in, int64_t in_stride,
               float* out, int64_t out_stride) {
  const int vectors = (units + kLanes - 1) / kLanes;
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

// Computes the sums of several slots. A row of weights that any slot needs is read once.
template <int kSlots>
void AddRows(int64_t inputs, int units, const float* weights, const float* in, int64_t in_stride, float* out,
             int64_t out_stride, int32_t* index) {
  const int64_t count = ListInputs<kSlots>(inputs, in, in_stride, index);
  const int vectors = (units + kLanes - 1) / kLanes;
  for (int s = 0; s < kSlots; ++s) std::fill_n(out + s * out_stride, vectors * kLanes, 0.0f);
  AddPanels<kSlots>(units, weights, index, count, in, in_stride, out, out_stride);
}

// Adds `count` listed rows of weights to the sums of one slot.
void AddListed(int units, const float* weights, const int32_t* index, int64_t count, const float* in, float* sums) {
  if constexpr (kVectorRegisters == 16) {
    const int vectors = (units + kLanes - 1) / kLanes;
    const int32_t* const end = index + count;
    for (; end - index >= kStreams; index += kStreams) AddTogether<kStreams>(weights, units, index, in, vectors, sums);
    for (; end - index >= 4; index += 4) AddTogether<4>(weights, units, index, in, vectors, sums);
    for (; index < end; ++index) AddTogether<1>(weights, units, index, in, vectors, sums);
  } else {
    AddPanels<1>(units, weights, index, count, in, 0, sums, 0);
  }
}

// Returns the first of n values whose bits differ, or n.
int64_t FirstDifference(const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    LaneMask differs = AnyBit(ToBits(Floats::Load(a + i)) ^ ToBits(Floats::Load(b + i)));
    if (n - i < kLanes) differs &= FirstLanes(n - i);
    if (differs != 0) return i + __builtin_ctz(differs);
  }
  return n;
}

// Takes over a slot's inputs and starts with the last kept sums that do not depend on changed inputs, or zeros. Returns
// the number of inputs that these sums contain.
int64_t StartFromKept(int64_t inputs, int64_t width, const float* in, DenseMemory* memory, float* sums) {
  std::vector<int64_t>& ends = memory->ends;
  if (ends.empty()) memory->in.assign(inputs + kLanes, 0.0f);
  const int64_t same = ends.empty() ? 0 : FirstDifference(in, memory->in.data(), inputs);
  while (!ends.empty() && ends.back() > same) ends.pop_back();
  memory->sums.resize(ends.size() * width);
  const int64_t first = ends.empty() ? 0 : ends.back();
  std::copy(in + first, in + inputs, memory->in.begin() + first);
  if (first == 0) {
    std::fill_n(sums, width, 0.0f);
  } else {
    std::copy_n(memory->sums.end() - width, width, sums);
  }
  return first;
}

// Computes the sums of one slot, with its memory or null.
void AddRows(int64_t inputs, int units, const float* weights, const float* in, float* sums, int32_t* index,
             DenseMemory* memory) {
  const int64_t width = int64_t{(units + kLanes - 1) / kLanes} * kLanes;
  if (memory == nullptr) {
    std::fill_n(sums, width, 0.0f);
    return AddListed(units, weights, index, ListInputs<1>(inputs, in, 0, index), in, sums);
  }
  const int64_t first = StartFromKept(inputs, width, in, memory, sums);
  weights += first * units;
  in += first;
  const int64_t count = ListInputs<1>(inputs - first, in, 0, index);
  for (int64_t r = 0; r < count; r += kKeptRows) {
    const int64_t rows = std::min(kKeptRows, count - r);
    AddListed(units, weights, index + r, rows, in, sums);
    memory->ends.push_back(r + rows < count ? first + index[r + rows] : inputs);
    memory->sums.insert(memory->sums.end(), sums, sums + width);
  }
}

}  // namespace

int64_t DenseListSize(int64_t inputs) { return inputs + std::max(kPanel, kLanes); }

void CpuDense(int64_t inputs, int units, const float* weights, const Epilogue* epilogues, int slots, const float* in,
              int64_t in_stride, float* out, int64_t out_stride, int32_t* list, DenseMemory* memory) {
  static constexpr decltype(&AddRows<2>) kAddRows[] = {AddRows<2>, AddRows<3>, AddRows<4>, AddRows<5>,
                                                       AddRows<6>, AddRows<7>, AddRows<8>};
  constexpr int kMost = static_cast<int>(std::size(kAddRows)) + 1;
  if (slots > 2 * kMost && units >= kPieceVectors * kLanes) {
    AddPieces(inputs, units, weights, slots, in, in_stride, out, out_stride);
  } else {
    for (int s = 0; s < slots; s += kMost) {
      const int some = std::min(kMost, slots - s);
      if (some > 1) {
        kAddRows[some - 2](inputs, units, weights, in + s * in_stride, in_stride, out + s * out_stride, out_stride,
                           list);
      } else {
        AddRows(inputs, units, weights, in + s * in_stride, out + s * out_stride, list, memory);
      }
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
