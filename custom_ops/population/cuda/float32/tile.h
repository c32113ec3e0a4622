// Shared code of the convolution and dense kernels, for .cu files only. A block computes a tile of sums, items (output
// pixels of a convolution, slots of a dense layer) times columns (filters, units). Slices of the inputs and weights are
// loaded into shared memory by asynchronous copies that run kStages - 1 slices ahead. A thread keeps kThreadItems x
// kThreadColumns sums in registers and adds the terms of each in order.
//
// A term costs a thread kThreadItems + kThreadColumns words from shared memory for kThreadItems * kThreadColumns fused
// multiply-adds. Per clock, a multiprocessor of compute capability 8.6 to 9.0 executes 128 multiply-adds and loads 32
// words, or 64 if lanes share vectors (see Tile). At 4 x 4 both take equally long; smaller sizes are bound by shared
// memory.
#ifndef NEUROEVO_POPULATION_CUDA_FLOAT32_TILE_H_
#define NEUROEVO_POPULATION_CUDA_FLOAT32_TILE_H_

#include <type_traits>

#include "core/portable_math.h"
#include "gpu/runtime.h"
#include "networks/vbn.h"
#include "population/cuda/float32/kernels.h"

namespace neuroevo::cuda {

// Tile sizes. threads: at least one per group of sums; additional threads only copy.
template <int items, int columns, int thread_items, int thread_columns, int terms, int stages,
          int threads = items / thread_items * (columns / thread_columns)>
struct Tile {
  static constexpr int kItems = items, kColumns = columns;
  static constexpr int kThreadItems = thread_items, kThreadColumns = thread_columns;
  static constexpr int kTerms = terms, kStages = stages, kThreads = threads;
  static constexpr int kItemGroups = kItems / kThreadItems, kColumnGroups = kColumns / kThreadColumns;
  static constexpr int kVector = kThreadColumns < 4 ? kThreadColumns : 4;  // a thread's adjacent columns
  static constexpr int kPitch = kTerms + 4;  // per item: the vectors of eight neighboring items have no bank conflict
  static constexpr int kWeightFloats = kTerms * kColumns, kStageFloats = kWeightFloats + kItems * kPitch;
  static constexpr int kBlocks = 384 / kThreads;  // blocks per multiprocessor, with 168 registers per thread
  static constexpr int kStagesBytes = kStages * kStageFloats * 4;
  static_assert(kItemGroups * kColumnGroups <= kThreads && kTerms % 4 == 0 && kColumns % 4 == 0, "");
  static_assert(kThreads % kTerms == 0, "all copies of a thread are of the same terms");
  static_assert(kStagesBytes + kItems * 16 <= 64 << 10, "a block of compute capability 7.5 has 64 KB of shared memory");

  // The i-th item and j-th column of a thread. Shared memory loads vectors twice as fast if all pairs of lanes that
  // differ in bit 0, or all pairs that differ in bit 1, load the same vector. Bit 0 therefore selects columns and bit 1
  // items: lanes that differ in bit 0 share inputs, and lanes that differ in bit 1 share weights.
  __device__ static int Item(int i) { return ItemGroup() + i * kItemGroups; }
  __device__ static int Column(int j) {
    return j / kVector * (kColumnGroups * kVector) + ColumnGroup() * kVector + j % kVector;
  }

 private:
  static constexpr unsigned kColumnPairs = kColumnGroups / 2;
  __device__ static int ItemGroup() {
    const unsigned t = threadIdx.x;
    return kItemGroups == 1 ? 0 : static_cast<int>(t / 4 / kColumnPairs * 2 + t / 2 % 2);
  }
  __device__ static int ColumnGroup() {
    const unsigned t = threadIdx.x;
    return static_cast<int>(kItemGroups == 1 ? t % kColumnGroups : t / 4 % kColumnPairs * 2 + t % 2);
  }
  static_assert(kItemGroups == 1 || (kItemGroups % 2 == 0 && kColumnGroups % 2 == 0), "");
};

// Returns the tensor of a position.
template <class T>
__device__ inline T* Of(const Tensors& tensors, int64_t position) {
  const int64_t index = tensors.slots == nullptr ? position : tensors.slots[position];
  return static_cast<T*>(tensors.data) + index * tensors.pitch;
}

template <int kCount>
__device__ inline void LoadFloats(const float* from, float* to) {
  if constexpr (kCount == 4) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else if constexpr (kCount == 2) {
    const float2 v = *reinterpret_cast<const float2*>(from);
    to[0] = v.x, to[1] = v.y;
  } else {
    *to = *from;
  }
}

__device__ inline float FromByte(unsigned byte) { return Mul(static_cast<float>(byte), 1.0f / 255); }

// The sums of one tile. Source locates the inputs in memory that holds Source::Value (float or uint8_t):
//   Place Locate(int term)                     the part of an input's location that is common to all items; must accept
//                                              terms beyond the last one
//   bool At(int item, Place, const Value**)    sets the input's address; false: the input is zero and is not read
template <class T, class Source>
class TileSums {
 public:
  // weights: points to the tile's first column. columns: number of columns of the tile that exist.
  __device__ TileSums(const Sums& sums, const float* weights, int columns, const Source& source, float* stages)
      : sums_(sums), weights_(weights), columns_(columns), source_(source), stages_(stages) {}

  __device__ void Compute(float (&sum)[T::kThreadItems][T::kThreadColumns]) {
#pragma unroll
    for (int i = 0; i < T::kThreadItems; ++i) {
#pragma unroll
      for (int j = 0; j < T::kThreadColumns; ++j) sum[i][j] = 0;
    }
    const int slices = (sums_.terms + T::kTerms - 1) / T::kTerms;
#pragma unroll 1
    for (int next = 0; next < slices + T::kStages - 1; ++next) {
      const int slice = next - (T::kStages - 1);  // multiplied while `next` is loaded
      if (slice >= 0) {
        CopyAsyncWait<T::kStages - 2>();
        __syncthreads();  // the slice is loaded, and all threads are done with the previous one, which `next` replaces
      }
      if (next < slices) Begin(next);
      CopyAsyncCommit();
      const bool computes = kComputing == T::kThreads || threadIdx.x < kComputing;
      if (slice >= 0 && computes) MultiplySlice(Stage(slice), sum);
      if (next < slices) End(next);
    }
  }

 private:
  static constexpr unsigned kComputing = T::kItemGroups * T::kColumnGroups;  // threads
  static constexpr bool kBytes = sizeof(typename Source::Value) == 1;
  static constexpr int kQuads = T::kTerms / 4;  // groups of four terms in a slice
  static constexpr int kLoads = kBytes ? (T::kItems * kQuads + T::kThreads - 1) / T::kThreads : 1;

  __device__ float* Stage(int slice) const { return stages_ + slice % T::kStages * T::kStageFloats; }

  // Starts to load a slice's weights and inputs; uint8 inputs are loaded into registers, which End stores.
  __device__ void Begin(int slice) {
    float* weights = Stage(slice);
    sums_.weights_by_4 ? CopyWeights<4>(slice, weights) : CopyWeights<1>(slice, weights);
    float* inputs = weights + T::kWeightFloats;
    if constexpr (!kBytes) {
      const auto copy = [&](float* to, const float* from, bool there, auto at_once, int) {
        CopyAsyncOrZero<4 * at_once.value>(to, from, there);
      };
      sums_.in_by_4 ? ForInputs<4>(slice, inputs, copy) : ForInputs<1>(slice, inputs, copy);
    } else if (sums_.in_by_4) {
      ForInputs<4>(slice, inputs, [&](float*, const uint8_t* from, bool there, auto, int i) {
        loaded_[i] = there ? *reinterpret_cast<const uint32_t*>(from) : 0;
      });
    }
  }

  __device__ void End(int slice) {
    if constexpr (kBytes) {
      float* inputs = Stage(slice) + T::kWeightFloats;
      if (sums_.in_by_4) {
        ForInputs<4>(slice, inputs, [&](float* to, const uint8_t*, bool, auto, int i) {
          *reinterpret_cast<float4*>(to) = make_float4(FromByte(loaded_[i] & 255), FromByte(loaded_[i] >> 8 & 255),
                                                       FromByte(loaded_[i] >> 16 & 255), FromByte(loaded_[i] >> 24));
        });
      } else {
        ForInputs<1>(slice, inputs,
                     [&](float* to, const uint8_t* from, bool there, auto, int) { *to = there ? FromByte(*from) : 0; });
      }
    }
  }

  // Terms and columns beyond the last ones become zero.
  template <int kAtOnce>
  __device__ void CopyWeights(int slice, float* to) const {
    constexpr unsigned kPerTerm = T::kColumns / kAtOnce, kTermsApart = T::kThreads / kPerTerm;
    static_assert(T::kThreads % kPerTerm == 0 && T::kTerms % kTermsApart == 0, "all copies are of the same columns");
    const int column = static_cast<int>(threadIdx.x % kPerTerm) * kAtOnce;
    const int term = slice * T::kTerms + static_cast<int>(threadIdx.x / kPerTerm);
    const float* from = weights_ + int64_t{term} * sums_.units + column;
    to += threadIdx.x * kAtOnce;
    const int terms = column < columns_ ? sums_.terms - term : 0;
#pragma unroll
    for (int i = 0; i < T::kTerms; i += kTermsApart) {
      CopyAsyncOrZero<4 * kAtOnce>(to + i * T::kColumns, from, i < terms);
      from += kTermsApart * int64_t{sums_.units};
    }
  }

  // Calls each(destination in shared memory, source, whether the source exists, kAtOnce, i) for the i-th input, or
  // group of four adjacent inputs, that this thread loads.
  template <int kAtOnce, class Each>
  __device__ void ForInputs(int slice, float* to, const Each& each) {
    constexpr unsigned kPerItem = T::kTerms / kAtOnce, kItemsApart = T::kThreads / kPerItem;
    constexpr int kCopies = (T::kItems + kItemsApart - 1) / kItemsApart;
    const int term = static_cast<int>(threadIdx.x % kPerItem) * kAtOnce, first = threadIdx.x / kPerItem;
    const auto place = source_.Locate(slice * T::kTerms + term);
    to += first * T::kPitch + term;
    // In groups of four, so that the data for computing several locations is loaded at once.
#pragma unroll
    for (int four = 0; four < kCopies; four += 4) {
      const typename Source::Value* from[4];
      bool there[4];
#pragma unroll
      for (int i = 0; i < 4 && four + i < kCopies; ++i) {
        const int item = first + (four + i) * kItemsApart;
        there[i] = source_.At(T::kItems % kItemsApart == 0 ? item : min(item, T::kItems - 1), place, &from[i]);
      }
#pragma unroll
      for (int i = 0; i < 4 && four + i < kCopies; ++i) {
        const int item = four + i;
        if (T::kItems % kItemsApart != 0 && first + item * kItemsApart >= T::kItems) break;
        each(to + item * kItemsApart * T::kPitch, from[i], there[i], std::integral_constant<int, kAtOnce>(), item);
      }
    }
  }

  __device__ static void MultiplySlice(const float* stage, float (&sum)[T::kThreadItems][T::kThreadColumns]) {
    const float* inputs = stage + T::kWeightFloats + T::Item(0) * T::kPitch;
    const float* weights = stage + T::Column(0);
    // Unroll at most 512 multiply-adds, because of the instruction cache.
    constexpr int kMost = 512 / (T::kThreadItems * T::kThreadColumns), kAtOnce = kMost < T::kTerms ? kMost : T::kTerms;
    static_assert(T::kTerms % kAtOnce == 0, "");
#pragma unroll 1
    for (int done = 0; done < T::kTerms; done += kAtOnce) {
#pragma unroll
      for (int quad = 0; quad < kAtOnce; quad += 4)
        MultiplyQuad(inputs + done + quad, weights + (done + quad) * T::kColumns, sum);
    }
  }

  // Multiplies and adds four terms.
  __device__ static void MultiplyQuad(const float* inputs, const float* weights,
                                      float (&sum)[T::kThreadItems][T::kThreadColumns]) {
    float in[T::kThreadItems][4];
#pragma unroll
    for (int i = 0; i < T::kThreadItems; ++i) LoadFloats<4>(inputs + i * T::kItemGroups * T::kPitch, in[i]);
#pragma unroll
    for (int term = 0; term < 4; ++term) {
      float w[T::kThreadColumns];
#pragma unroll
      for (int j = 0; j < T::kThreadColumns; j += T::kVector) {
        LoadFloats<T::kVector>(weights + term * T::kColumns + j * T::kColumnGroups, w + j);
      }
#pragma unroll
      for (int i = 0; i < T::kThreadItems; ++i) {
#pragma unroll
        for (int j = 0; j < T::kThreadColumns; ++j) sum[i][j] = Fma(in[i][term], w[j], sum[i][j]);
      }
    }
  }

  const Sums& sums_;
  const float* weights_;
  int columns_;
  const Source& source_;
  float* stages_;
  uint32_t loaded_[kLoads];
};

// Normalizes, adds the bias, applies the activation and stores the sums. theta: the row, at the tile's first column.
// out_at(item): destination of the item's value of that column, null if the item does not exist.
template <class T, class OutAt>
__device__ void StoreTile(const Sums& sums, const float* theta, int columns, const OutAt& out_at,
                          float (&sum)[T::kThreadItems][T::kThreadColumns]) {
  if (static_cast<int>(threadIdx.x) >= T::kItemGroups * T::kColumnGroups) return;
#pragma unroll
  for (int j = 0; j < T::kThreadColumns; ++j) {
    const bool there = T::Column(j) < columns;
#pragma unroll
    for (int i = 0; i < T::kThreadItems; ++i) sum[i][j] = WithoutMinusZero(sum[i][j]);
    if (sums.vbn >= 0) {
      const float* means = theta + sums.vbn + T::Column(j);
      const float mean = there ? means[0] : 0, factor = there ? means[sums.units] : 0;
#pragma unroll
      for (int i = 0; i < T::kThreadItems; ++i) sum[i][j] = vbn::Normalized(sum[i][j], mean, factor);
    }
    const float add = sums.bias >= 0 && there ? theta[sums.bias + T::Column(j)] : 0;
#pragma unroll
    for (int i = 0; i < T::kThreadItems; ++i) {
      if (sums.bias >= 0) sum[i][j] = Add(sum[i][j], add);
      if (sums.activation == Activation::kRelu) sum[i][j] = sum[i][j] > 0 ? sum[i][j] : 0;
    }
  }
#pragma unroll
  for (int i = 0; i < T::kThreadItems; ++i) {
    float* out = out_at(T::Item(i));
    if (out == nullptr) continue;
#pragma unroll
    for (int j = 0; j < T::kThreadColumns; j += T::kVector) {
      if constexpr (T::kVector == 4) {
        if (sums.out_by_4) {
          if (T::Column(j) >= columns) continue;
          *reinterpret_cast<float4*>(out + T::Column(j)) =
              make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
          continue;
        }
      }
#pragma unroll
      for (int k = j; k < j + T::kVector; ++k) {
        if (T::Column(k) < columns) out[T::Column(k)] = sum[i][k];
      }
    }
  }
  if (sums.activation != Activation::kTanh) return;
  // Applied to the values that this thread has stored, so that the long code exists once and not once per sum.
#pragma unroll 1
  for (int i = 0; i < T::kThreadItems; ++i) {
    float* out = out_at(T::Item(i));
#pragma unroll 1
    for (int j = 0; out != nullptr && j < T::kThreadColumns; ++j) {
      if (T::Column(j) < columns) out[T::Column(j)] = Tanh(out[T::Column(j)]);
    }
  }
}

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_FLOAT32_TILE_H_
