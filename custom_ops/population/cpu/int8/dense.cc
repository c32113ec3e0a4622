// Fully connected layers of bytes. The nonzero inputs are first gathered in groups of four; the rows of weights of four
// inputs are then interleaved in registers. The weights of zero inputs are never read.
#include <algorithm>

#include "population/cpu/int8/kernels.h"
#include "population/cpu/int8/simd.h"

namespace neuroevo {

namespace {

constexpr int kQuads = 8;  // quads of inputs per panel; all units of a panel are processed before the next panel
constexpr int kSums = kVectorRegisters / 2;

// Restores the order of the sums. Interleaving permutes the units of kBytes columns: lane t of the L-th 16 bytes of
// vector j is unit 16 L + 4 j + t. Sums keep that order until all inputs are processed.
void PutInOrder(int32_t* sums, int64_t columns) {
  for (int64_t first = 0; first < columns; first += kBytes) {
    int32_t mixed[kBytes];
    memcpy(mixed, sums + first, sizeof(mixed));
    for (int j = 0; j < 4; ++j) {
      for (int l = 0; l < kLanes / 4; ++l) {
        memcpy(sums + first + 16 * l + 4 * j, mixed + j * kLanes + 4 * l, 4 * sizeof(int32_t));
      }
    }
  }
}

// Adds the products of a panel to sums of kSlots x (kBlocks * kBytes) units. index: [quads, 4], values: [quads, kSlots,
// 4], each followed by the entries of the next panel, which is prefetched.
template <int kSlots, int kBlocks>
void Accumulate(const int8_t* weights, int64_t units, const int32_t* index, const uint8_t* values, int64_t quads,
                int32_t* sums, int64_t sums_stride) {
  Sums sum[kSlots][kBlocks * 4];
#pragma GCC unroll 4
  for (int s = 0; s < kSlots; ++s) {
#pragma GCC unroll 16
    for (int j = 0; j < kBlocks * 4; ++j) sum[s][j] = Sums::Load(sums + s * sums_stride + j * kLanes);
  }
  for (int64_t q = 0; q < quads; ++q, index += 4, values += kSlots * 4) {
    const int8_t *row[4], *ahead[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      row[i] = weights + index[i] * units;
      ahead[i] = weights + index[i + kQuads * 4] * units;
    }
    Bytes value[kSlots];
#pragma GCC unroll 4
    for (int s = 0; s < kSlots; ++s) value[s] = Bytes::Repeat(values + s * 4);
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      Bytes weight[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        // Short vectors are less than a cache line; prefetching a line twice costs almost nothing.
        __builtin_prefetch(ahead[i] + b * kBytes);
        weight[i] = Bytes::Load(row[i] + b * kBytes);
      }
      const Bytes low01 = InterleaveBytesLow(weight[0], weight[1]), low23 = InterleaveBytesLow(weight[2], weight[3]);
      const Bytes high01 = InterleaveBytesHigh(weight[0], weight[1]),
                  high23 = InterleaveBytesHigh(weight[2], weight[3]);
      const Bytes four[4] = {InterleavePairsLow(low01, low23), InterleavePairsHigh(low01, low23),
                             InterleavePairsLow(high01, high23), InterleavePairsHigh(high01, high23)};
#pragma GCC unroll 4
      for (int s = 0; s < kSlots; ++s) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) sum[s][b * 4 + j] = AddSmallProducts(sum[s][b * 4 + j], value[s], four[j]);
      }
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < kSlots; ++s) {
#pragma GCC unroll 16
    for (int j = 0; j < kBlocks * 4; ++j) sum[s][j].Store(sums + s * sums_stride + j * kLanes);
  }
}

// Pads a list of `count` inputs with zeros to whole quads and adds the indices to prefetch for one more panel. Returns
// the number of quads.
template <int kSlots>
int64_t FinishList(int64_t count, int32_t* index, uint8_t* values) {
  const int64_t quads = (count + 3) / 4;
  const int32_t last = count > 0 ? index[count - 1] : 0;
  for (int64_t i = count; i < quads * 4; ++i) {
    for (int s = 0; s < kSlots; ++s) values[(i / 4 * kSlots + s) * 4 + i % 4] = 0;
  }
  for (int64_t i = count; i < (quads + kQuads) * 4; ++i) index[i] = last;
  return quads;
}

// Lists the inputs that are not zero in every slot. An input above kMaxSmall is listed twice, with two halves.
template <int kSlots>
int64_t Gather(int64_t inputs, const uint8_t* in, int64_t in_stride, int32_t* index, uint8_t* values) {
  alignas(64) static constexpr uint8_t kZeros[64] = {};
  int64_t count = 0;
  const auto put_part = [&](int64_t i, int round_up, int shift) {
#pragma GCC unroll 4
    for (int s = 0; s < kSlots; ++s) {
      values[(count / 4 * kSlots + s) * 4 + count % 4] =
          static_cast<uint8_t>((in[s * in_stride + i] + round_up) >> shift);
    }
    index[count++] = static_cast<int32_t>(i);
  };
  const auto put = [&](int64_t i) {
    uint8_t largest = 0;
#pragma GCC unroll 4
    for (int s = 0; s < kSlots; ++s) largest = std::max(largest, in[s * in_stride + i]);
    if (largest <= kMaxSmall) return put_part(i, 0, 0);
    put_part(i, 0, 1);
    put_part(i, 1, 1);
  };
  int64_t i = 0;
  for (; i + 64 <= inputs; i += 64) {
    uint64_t any = 0;
#pragma GCC unroll 4
    for (int s = 0; s < kSlots; ++s) any |= GreaterMask(in + s * in_stride + i, kZeros);
    for (; any != 0; any &= any - 1) put(i + __builtin_ctzll(any));
  }
  for (; i < inputs; ++i) {
    uint8_t any = 0;
    for (int s = 0; s < kSlots; ++s) any |= in[s * in_stride + i];
    if (any != 0) put(i);
  }
  return FinishList<kSlots>(count, index, values);
}

// Lists the inputs at which a is greater than b, with the differences, in two halves if they are above kMaxSmall.
int64_t GatherExcess(int64_t inputs, const uint8_t* a, const uint8_t* b, int32_t* index, uint8_t* values) {
  int64_t count = 0;
  const auto put = [&](int64_t i) {
    const uint8_t excess = a[i] - b[i], half = excess > kMaxSmall ? excess / 2 : 0;
    if (half > 0) {
      values[count] = half;
      index[count++] = static_cast<int32_t>(i);
    }
    values[count] = excess - half;
    index[count++] = static_cast<int32_t>(i);
  };
  int64_t i = 0;
  for (; i + 64 <= inputs; i += 64) {
    for (uint64_t greater = GreaterMask(a + i, b + i); greater != 0; greater &= greater - 1) {
      put(i + __builtin_ctzll(greater));
    }
  }
  for (; i < inputs; ++i) {
    if (a[i] > b[i]) put(i);
  }
  return FinishList<1>(count, index, values);
}

int64_t IndexBytes(int64_t inputs) { return (2 * inputs + kQuads * 4 + 16) * static_cast<int64_t>(sizeof(int32_t)); }

// Computes the sums of the products of a list's inputs.
template <int kSlots>
void SumList(int64_t units, const int8_t* weights, const int32_t* index, const uint8_t* values, int64_t quads,
             int32_t* sums, int64_t sums_stride) {
  const int64_t columns = Int8DenseStride(units);
  for (int s = 0; s < kSlots; ++s) std::fill_n(sums + s * sums_stride, columns, 0);
  constexpr int kWide = std::max(1, kSums / (4 * kSlots));
  for (int64_t q = 0; q < quads; q += kQuads) {
    const int64_t here = std::min<int64_t>(kQuads, quads - q);
    int64_t column = 0;
    const auto sweep = [&](auto accumulate, int width) {
      for (; column + width <= columns; column += width) {
        accumulate(weights + column, units, index + q * 4, values + q * 4 * kSlots, here, sums + column, sums_stride);
      }
    };
    sweep(Accumulate<kSlots, kWide>, kWide * kBytes);
    sweep(Accumulate<kSlots, 1>, kBytes);
  }
  for (int s = 0; s < kSlots; ++s) PutInOrder(sums + s * sums_stride, columns);
}

template <int kSlots>
void Dense(int64_t inputs, int64_t units, const int8_t* weights, const uint8_t* in, int64_t in_stride, int32_t* sums,
           int64_t sums_stride, uint8_t* scratch) {
  int32_t* index = reinterpret_cast<int32_t*>(scratch);
  uint8_t* values = scratch + IndexBytes(inputs);
  const int64_t quads = Gather<kSlots>(inputs, in, in_stride, index, values);
  SumList<kSlots>(units, weights, index, values, quads, sums, sums_stride);
}

}  // namespace

int64_t Int8DenseStride(int64_t units) { return (units + kBytes - 1) / kBytes * kBytes; }

int64_t Int8DenseScratchBytes(int64_t inputs, int slots) { return IndexBytes(inputs) + (2 * inputs + 4) * slots; }

void Int8Dense(int64_t inputs, int64_t units, const int8_t* weights, int slots, const uint8_t* in, int64_t in_stride,
               int32_t* sums, int64_t sums_stride, uint8_t* scratch) {
  static_assert(kMaxInt8DenseSlots == 4, "one entry per number of slots");
  using Function = decltype(&Dense<1>);
  static constexpr Function kFunctions[] = {Dense<1>, Dense<2>, Dense<3>, Dense<4>};
  kFunctions[slots - 1](inputs, units, weights, in, in_stride, sums, sums_stride, scratch);
}

void Int8DenseExcess(int64_t inputs, int64_t units, const int8_t* weights, const uint8_t* a, const uint8_t* b,
                     int32_t* sums, uint8_t* scratch) {
  int32_t* index = reinterpret_cast<int32_t*>(scratch);
  uint8_t* values = scratch + IndexBytes(inputs);
  const int64_t quads = GatherExcess(inputs, a, b, index, values);
  SumList<1>(units, weights, index, values, quads, sums, 0);
}

}  // namespace neuroevo
