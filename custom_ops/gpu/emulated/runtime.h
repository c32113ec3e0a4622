// Emulation on the CPU of the parts of CUDA that our kernels use. With it, g++ compiles .cu files, so that tests,
// sanitizers and machines without a GPU run the same kernels. It is slow and models a GPU only in these respects:
//
// - The threads of a block are fibers of one CPU thread, switched at barriers and warp operations. The order in which
//   they resume changes from barrier to barrier, so a missing barrier causes wrong or varying results. Blocks run
//   sequentially, also in varying order.
// - CopyAsync copies either immediately or in the CopyAsyncWait that waits for it, at random, which reveals code that
//   still reads the old words or reads the new words too early.
// - Dynamic shared memory and new device memory are filled with NaN. Static shared memory keeps its previous contents.
// - If some threads of a block never reach a barrier at which others wait, an error is thrown.
#ifndef NEUROEVO_GPU_EMULATED_RUNTIME_H_
#define NEUROEVO_GPU_EMULATED_RUNTIME_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "gpu/device.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __launch_bounds__(...)

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}  // NOLINT: as CUDA's own
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace neuroevo::cuda::emulation {

extern thread_local uint3 thread_index, block_index;
extern thread_local dim3 block_dimensions, grid_dimensions;
extern thread_local char* dynamic_shared;

void Barrier();
// Passes `value` to the other lanes of the warp and returns the value of lane `source`, or `value` without such a lane.
uint64_t Exchange(uint64_t value, int source);
// Emulates the tensor cores: implementation of MultiplyBytes.
void Multiply(const uint32_t (&a)[4], const uint32_t (&b)[2], int32_t (&sums)[4]);
void StartCopy(void* dst, const void* src, int bytes);
void EndGroup();
void FinishGroups(int pending);
void Run(dim3 grid, dim3 block, size_t shared, const std::function<void()>& thread);

template <class T>
T Shuffle(T value, int source) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves 4 or 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = Exchange(bits, source);
  memcpy(&value, &bits, sizeof(T));
  return value;
}

inline int Lane() {
  return static_cast<int>(
      (thread_index.x + block_dimensions.x * (thread_index.y + block_dimensions.y * thread_index.z)) % 32);
}

}  // namespace neuroevo::cuda::emulation

#define threadIdx neuroevo::cuda::emulation::thread_index
#define blockIdx neuroevo::cuda::emulation::block_index
#define blockDim neuroevo::cuda::emulation::block_dimensions
#define gridDim neuroevo::cuda::emulation::grid_dimensions

inline void __syncthreads() { neuroevo::cuda::emulation::Barrier(); }
inline void __syncwarp(unsigned = ~0u) { neuroevo::cuda::emulation::Exchange(0, 0); }
template <class T>
T __shfl_sync(unsigned, T value, int source) {
  return neuroevo::cuda::emulation::Shuffle(value, source & 31);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return neuroevo::cuda::emulation::Shuffle(value, neuroevo::cuda::emulation::Lane() ^ mask);
}
template <class T>
T __shfl_down_sync(unsigned, T value, int delta) {
  return neuroevo::cuda::emulation::Shuffle(value, neuroevo::cuda::emulation::Lane() + delta);
}
template <class T>
T __ldg(const T* place) {
  return *place;
}
template <class T>
T __ldcs(const T* place) {
  return *place;
}
template <class T>
T atomicAdd(T* place, T value) {
  return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}
template <class T>
T atomicMax(T* place, T value) {
  T before = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (before < value &&
         !__atomic_compare_exchange_n(place, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
}
inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}

namespace neuroevo::cuda {

template <class... Params, class... Args>
void Launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared, device::Stream, Args... args) {
  emulation::Run(grid, block, shared, [=] { kernel(args...); });
}

inline char* DynamicShared() { return emulation::dynamic_shared; }

template <int kBytes>
void CopyAsync(void* shared_dst, const void* src) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
  emulation::StartCopy(shared_dst, src, kBytes);
}
template <int kBytes>
void CopyAsyncOrZero(void* shared_dst, const void* src, bool copy) {
  alignas(16) static constexpr char kZeros[16] = {};
  CopyAsync<kBytes>(shared_dst, copy ? src : kZeros);
}
inline void CopyAsyncCommit() { emulation::EndGroup(); }
template <int kPending>
void CopyAsyncWait() {
  emulation::FinishGroups(kPending);
}

inline int32_t DotBytes(uint32_t a, uint32_t b, int32_t sum) {
  for (int i = 0; i < 32; i += 8) sum += static_cast<int32_t>(a >> i & 255) * static_cast<int8_t>(b >> i & 255);
  return sum;
}

inline void MultiplyBytes(const uint32_t (&a)[4], const uint32_t (&b)[2], int32_t (&sums)[4]) {
  emulation::Multiply(a, b, sums);
}

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_GPU_EMULATED_RUNTIME_H_
