// Fully connected layers: the non-zero inputs are gathered first, then only their rows of weights are streamed.
#include <algorithm>

#include "core/simd.h"
#include "population/cpu_kernels.h"

namespace neuroevo {

namespace {

// Rows of weights go in panels: all columns of a panel before the next one, while the next one is being prefetched.
// Of 8, 16, 32 and 64 rows population_bench likes 8 best.
constexpr int kPanel = 8;
constexpr int kAccumulators = kVectorRegisters / 2;

// Adds rows [0, rows) of a panel to sums of kSlots x (kVectors * kLanes) columns.
template <int kSlots, int kVectors>
void Accumulate(const float* weights, int64_t units, const int32_t* index, const float* values, int rows, float* sums,
                int64_t sums_stride) {
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
    for (int s = 0; s < kSlots; ++s) value[s] = Floats(values[r * kSlots + s]);
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

// Writes the inputs that are not zero in every slot: their places, and their values [count, kSlots].
template <int kSlots>
int64_t Gather(int64_t inputs, const float* in, int64_t in_stride, int32_t* index, float* values) {
  int64_t count = 0;
  for (int64_t i = 0; i < inputs; ++i) {
    bool any = false;
#pragma GCC unroll 8
    for (int s = 0; s < kSlots; ++s) {
      const float value = in[s * in_stride + i];
      values[count * kSlots + s] = value;
      any |= value != 0;
    }
    index[count] = static_cast<int32_t>(i);
    count += any;  // else the next input overwrites this one
  }
  // Prefetches look one panel ahead.
  for (int i = 0; i < kPanel; ++i) index[count + i] = count > 0 ? index[count - 1] : 0;
  return count;
}

template <int kSlots>
void Dense(int64_t inputs, int units, const float* weights, const Epilogue& epilogue, const float* in,
           int64_t in_stride, float* out, int64_t out_stride, float* scratch) {
  float* values = scratch;
  int32_t* index = reinterpret_cast<int32_t*>(scratch + inputs * kSlots + kSlots);
  const int64_t count = Gather<kSlots>(inputs, in, in_stride, index, values);

  const int vectors = (units + kLanes - 1) / kLanes;
  for (int s = 0; s < kSlots; ++s) std::fill_n(out + s * out_stride, vectors * kLanes, 0.0f);
  constexpr int kWide = kAccumulators / kSlots, kNarrow = kWide >= 8 ? 4 : 1;
  for (int64_t r = 0; r < count; r += kPanel) {
    const int rows = static_cast<int>(std::min<int64_t>(kPanel, count - r));
    int v = 0;
    const auto sweep = [&](auto accumulate, int width) {
      for (; v + width <= vectors; v += width) {
        accumulate(weights + v * kLanes, units, index + r, values + r * kSlots, rows, out + v * kLanes, out_stride);
      }
    };
    sweep(Accumulate<kSlots, kWide>, kWide);
    sweep(Accumulate<kSlots, kNarrow>, kNarrow);
    sweep(Accumulate<kSlots, 1>, 1);
  }

  for (int s = 0; s < kSlots; ++s) {
    for (int v = 0; v < vectors; ++v) {
      float* place = out + s * out_stride + v * kLanes;
      Floats value = Floats::Load(place);
      if (epilogue.bias != nullptr) value = Add(value, Floats::Load(epilogue.bias + v * kLanes));
      if (epilogue.relu) value = Relu(value);
      value.Store(place);
    }
  }
}

}  // namespace

int64_t DenseScratchFloats(int64_t inputs, int slots) { return (inputs + 1) * (slots + 1) + kPanel; }

void CpuDense(int64_t inputs, int units, const float* weights, const Epilogue& epilogue, int slots, const float* in,
              int64_t in_stride, float* out, int64_t out_stride, float* scratch) {
  static_assert(kMaxDenseSlots == 8, "one entry a number of slots");
  using Function = decltype(&Dense<1>);
  static constexpr Function kFunctions[] = {Dense<1>, Dense<2>, Dense<3>, Dense<4>,
                                            Dense<5>, Dense<6>, Dense<7>, Dense<8>};
  kFunctions[slots - 1](inputs, units, weights, epilogue, in, in_stride, out, out_stride, scratch);
}

}  // namespace neuroevo
