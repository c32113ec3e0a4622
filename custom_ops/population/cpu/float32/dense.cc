// Fully connected layers: the non-zero inputs are gathered first, then only their rows of weights are streamed.
#include <algorithm>

#include "core/simd.h"
#include "population/cpu/float32/epilogue.h"
#include "population/cpu/float32/kernels.h"

namespace neuroevo {

namespace {

// Rows of weights go in panels: all columns of a panel before the next one, while the next one is being prefetched.
// Of 8, 16, 32 and 64 rows forward_bench likes 8 best.
constexpr int kPanel = 8;
constexpr int kAccumulators = kVectorRegisters / 2;

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
      // Not a whole cache line each where vectors are shorter; the second prefetch of a line costs nearly nothing.
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

// Lists the inputs that are not zero in every slot; returns how many.
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

template <int kSlots>
void Dense(int64_t inputs, int units, const float* weights, const Epilogue* epilogues, const float* in,
           int64_t in_stride, float* out, int64_t out_stride, int32_t* index) {
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

  for (int s = 0; s < kSlots; ++s) {
    const ThinProducts thin(epilogues[s], inputs, [&](const float* a) {
      PartialSums sums;
      sums.Add(in + s * in_stride, a, inputs);
      return sums.Total();
    });
    Finish(epilogues[s], thin, units, out + s * out_stride);
  }
}

}  // namespace

int64_t DenseListSize(int64_t inputs) { return inputs + std::max(kPanel, kLanes); }

void CpuDense(int64_t inputs, int units, const float* weights, const Epilogue* epilogues, int slots, const float* in,
              int64_t in_stride, float* out, int64_t out_stride, int32_t* list) {
  static_assert(kMaxDenseSlots == 8, "one entry a number of slots");
  using Function = decltype(&Dense<1>);
  static constexpr Function kFunctions[] = {Dense<1>, Dense<2>, Dense<3>, Dense<4>,
                                            Dense<5>, Dense<6>, Dense<7>, Dense<8>};
  kFunctions[slots - 1](inputs, units, weights, epilogues, in, in_stride, out, out_stride, list);
}

}  // namespace neuroevo
