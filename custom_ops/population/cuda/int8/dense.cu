// Dense layers of integer networks.
//
// A slot that is the only one with its row reads all of the row's weights for few products, so it is memory-bound. A
// thread computes 8 units, whose weights are streams of adjacent bytes, with 128 bytes of weights in flight: with 4
// blocks of 256 threads per multiprocessor these are 128 KB, four times the amount that hides the memory latency of an
// H200. The two halves of a block compute different units, so activations are read from the L2 cache once per 16 units.
// LargeModel's 7744 x 512 weights take 32 blocks per slot, enough for a low latency of a single slot as well.
//
// Slots that share a row read its weights once per 32 slots and use the tensor cores.
#include "gpu/runtime.h"
#include "population/cuda/int8/kernels.h"
#include "population/cuda/int8/sums.h"

namespace neuroevo::cuda {

namespace {

constexpr int kUnits = 8;      // per thread of Int8Dense
constexpr int kHalfWarps = 4;  // most warps per half of a block

constexpr int kSharedWarps = 8;  // per block of Int8SharedDense, each with a part of the products
constexpr int kRows = kSharedSlots / 8;
constexpr int kTiles = kDenseUnits / 8;

__device__ inline int32_t Dot(const uint4& bytes, const uint4& weights, int32_t sum) {
  sum = DotBytes(bytes.x, weights.x, sum);
  sum = DotBytes(bytes.y, weights.y, sum);
  sum = DotBytes(bytes.z, weights.z, sum);
  return DotBytes(bytes.w, weights.w, sum);
}

// Sums kUnits = 8 values per lane over the warp; lane l gets the sum of value l / 4.
__device__ inline int32_t SumOverLanes(int32_t (&sums)[kUnits]) {
#pragma unroll
  for (int half = kUnits / 2; half > 0; half /= 2) {
    const int other = 4 * half;  // lanes exchange half of their remaining values
    const bool upper = (threadIdx.x & other) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const int32_t given = upper ? sums[i] : sums[i + half];
      sums[i] = (upper ? sums[i + half] : sums[i]) + __shfl_xor_sync(0xffffffffu, given, other);
    }
  }
  sums[0] += __shfl_xor_sync(0xffffffffu, sums[0], 2);
  return sums[0] + __shfl_xor_sync(0xffffffffu, sums[0], 1);
}

// Writes a sum with its bias, as an output if this is the last layer; returns it.
__device__ inline int32_t Finish(const Int8Layer& layer, const Int8Call& call, int64_t position, int unit,
                                 int32_t sum) {
  const int exponent = ExponentOf(layer, call, position);
  sum += BiasOf(layer, RowOf(call, position), unit, exponent);
  if (call.outputs == nullptr) {
    call.sums[4 * position * layer.out_words() + unit] = sum;
  } else if (unit < layer.outputs) {
    call.outputs[int64_t{call.slots[position]} * layer.outputs + unit] = OutputOf(layer, sum, exponent);
  }
  return sum;
}

// Each block computes kDenseUnits units of one slot, half of them in each half of its threads (threadIdx.y). The
// threads of a half process the segments in turn.
__global__ __launch_bounds__(2 * 32 * kHalfWarps, 4) void Int8Dense(Int8Layer layer, Int8Call call,
                                                                    const int32_t* positions, int64_t first_position) {
  static_assert(kDenseUnits == 2 * kUnits, "a block has two halves");
  __shared__ int32_t warp_sums[kHalfWarps][kDenseUnits];
  const unsigned tiles = (layer.outputs + kDenseUnits - 1) / kDenseUnits;
  const int first_unit = static_cast<int>(blockIdx.x % tiles) * kDenseUnits;
  int64_t position = first_position + blockIdx.x / tiles;
  if (positions != nullptr) position = positions[position];

  int32_t sums[kUnits] = {};
  const uint4* input = reinterpret_cast<const uint4*>(InputOf(layer, call, position));
  const uint4* weights = reinterpret_cast<const uint4*>(RowOf(call, position) + layer.weights_place) +
                         int64_t{first_unit + static_cast<int>(threadIdx.y) * kUnits} * layer.segments;
  const int segments = static_cast<int>(layer.input_words() / 4);
  for (int segment = threadIdx.x; segment < segments; segment += blockDim.x) {
    const uint4 bytes = __ldg(input + segment);
    uint4 loaded[kUnits];
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit) loaded[unit] = __ldg(weights + unit * layer.segments + segment);
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit) sums[unit] = Dot(bytes, loaded[unit], sums[unit]);
  }
  const int32_t warp_sum = SumOverLanes(sums);
  const int lane = threadIdx.x % 32;
  if (lane % 4 == 0) warp_sums[threadIdx.x / 32][threadIdx.y * kUnits + lane / 4] = warp_sum;
  __syncthreads();
  if (threadIdx.x >= 32 || threadIdx.y > 0) return;
  int32_t largest = 0;
  if (lane < kDenseUnits && first_unit + lane < layer.padded_outputs()) {
    int32_t sum = 0;
    for (int warp = 0; warp < static_cast<int>(blockDim.x) / 32; ++warp) sum += warp_sums[warp][lane];
    largest = max(0, Finish(layer, call, position, first_unit + lane, sum));
  }
  if (call.outputs != nullptr) return;
  largest = LargestOf(largest, kDenseUnits);
  if (lane == 0) atomicMax(call.largest + position, largest);
}

// Each block computes kDenseUnits units of up to kSharedSlots slots; its warps process the products in turn, 64 each.
__global__ __launch_bounds__(32 * kSharedWarps) void Int8SharedDense(Int8Layer layer, Int8Call call,
                                                                     const SharedSlots* shared, int64_t first_shared) {
  __shared__ int32_t warp_sums[kSharedWarps][kSharedSlots][kDenseUnits];
  const unsigned tiles = (layer.outputs + kDenseUnits - 1) / kDenseUnits;
  const int first_unit = static_cast<int>(blockIdx.x % tiles) * kDenseUnits;
  const SharedSlots slots = shared[first_shared + blockIdx.x / tiles];
  const int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4, warp = static_cast<int>(threadIdx.x) / 32;

  const uint4* input[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int slot = min(group + 8 * r, slots.count - 1);  // sums of duplicates are not stored
    input[r] = reinterpret_cast<const uint4*>(InputOf(layer, call, slots.first + slot));
  }
  const uint4* weights = reinterpret_cast<const uint4*>(RowOf(call, slots.first) + layer.weights_place) +
                         int64_t{first_unit + group} * layer.segments;
  int32_t sums[2][kTiles][4] = {};
  const int segments = static_cast<int>(layer.input_words() / 4);
  for (int segment = 4 * warp + member; segment < layer.segments; segment += 4 * kSharedWarps) {
    uint4 a[kRows], b[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) b[tile] = __ldg(weights + tile * 8 * layer.segments + segment);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      a[r] = make_uint4(0, 0, 0, 0);
      if (segment < segments) a[r] = __ldg(input[r] + segment);
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 &upper = a[2 * half], &lower = a[2 * half + 1];
        MultiplyBytes({upper.x, lower.x, upper.y, lower.y}, {b[tile].x, b[tile].y}, sums[half][tile]);
        MultiplyBytes({upper.z, lower.z, upper.w, lower.w}, {b[tile].z, b[tile].w}, sums[half][tile]);
      }
    }
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 2 * 4; ++i) {
      warp_sums[warp][group + i / 2 * 8][8 * tile + 2 * member + i % 2] = sums[i / 4][tile][i % 4];
    }
  }
  __syncthreads();
  // A thread finishes the sums of one unit for every 16th slot.
  const int unit = static_cast<int>(threadIdx.x) % kDenseUnits;
  for (int slot = static_cast<int>(threadIdx.x) / kDenseUnits; slot < kSharedSlots;
       slot += 32 * kSharedWarps / kDenseUnits) {
    int32_t largest = 0;
    if (slot < slots.count && first_unit + unit < layer.padded_outputs()) {
      int32_t sum = 0;
#pragma unroll
      for (int w = 0; w < kSharedWarps; ++w) sum += warp_sums[w][slot][unit];
      largest = max(0, Finish(layer, call, slots.first + slot, first_unit + unit, sum));
    }
    if (call.outputs != nullptr) continue;
    largest = LargestOf(largest, kDenseUnits);
    if (unit == 0 && slot < slots.count) atomicMax(call.largest + slots.first + slot, largest);
  }
}

}  // namespace

void SumDense(const Int8Layer& layer, const Int8Call& call, const int32_t* positions, int64_t count,
              device::Stream stream) {
  const int64_t tiles = (layer.outputs + kDenseUnits - 1) / kDenseUnits;
  const int64_t segments = layer.input_words() / 4;
  const int warps = static_cast<int>(segments < 32 * kHalfWarps ? (segments + 31) / 32 : kHalfWarps);
  ForGrids(count, tiles, [&](int64_t first, unsigned blocks) {
    Launch(Int8Dense, dim3(blocks), dim3(32 * warps, 2), 0, stream, layer, call, positions, first);
  });
}

void SumSharedDense(const Int8Layer& layer, const Int8Call& call, const SharedSlots* shared, int64_t count,
                    device::Stream stream) {
  const int64_t tiles = (layer.outputs + kDenseUnits - 1) / kDenseUnits;
  ForGrids(count, tiles, [&](int64_t first, unsigned blocks) {
    Launch(Int8SharedDense, dim3(blocks), dim3(32 * kSharedWarps), 0, stream, layer, call, shared, first);
  });
}

}  // namespace neuroevo::cuda
