// Implementation of gpu/runtime.h on a GPU.
#ifndef NEUROEVO_GPU_NVCC_RUNTIME_H_
#define NEUROEVO_GPU_NVCC_RUNTIME_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "core/error.h"
#include "gpu/device.h"

namespace neuroevo::cuda {

constexpr size_t kDefaultShared = 48 << 10;  // bytes of shared memory available to every kernel without opting in

// Throws the error of a failed call, clears it, and says so if the process can no longer use the GPU.
void Check(cudaError_t status, const char* what);

// Runs kernel<<<grid, block, shared, stream>>>(args...). Throws if the launch fails. shared: in bytes.
template <class... Params, class... Args>
void Launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared, device::Stream stream, Args... args) {
  cudaError_t status = cudaSuccess;
  if (shared > kDefaultShared) {
    status = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared));
  }
  if (status == cudaSuccess) {
    // clang-format off
    kernel<<<grid, block, shared, static_cast<cudaStream_t>(stream)>>>(args...);
    // clang-format on
    status = cudaGetLastError();
  }
  if (status != cudaSuccess) {
    Check(status, Concat("cannot launch a kernel of ", grid.x, "x", grid.y, "x", grid.z, " blocks of ",
                         block.x * block.y * block.z, " threads and ", shared, " bytes of shared memory")
                      .c_str());
  }
}

// Returns the block's dynamic shared memory, aligned to 16 bytes.
__device__ inline char* DynamicShared() {
  extern __shared__ __align__(16) char neuroevo_dynamic_shared[];
  return neuroevo_dynamic_shared;
}

// Asynchronously copies 4, 8 or 16 bytes, aligned to their size, from global to shared memory. The copy is visible to
// the thread after CopyAsyncWait and to the block after a subsequent __syncthreads. Before compute capability 8.0 the
// copy is synchronous.
template <int kBytes>
__device__ inline void CopyAsync(void* shared_dst, const void* src) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
#if __CUDA_ARCH__ >= 800
  const unsigned dst = static_cast<unsigned>(__cvta_generic_to_shared(shared_dst));
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(dst), "l"(src), "n"(kBytes) : "memory");
  }
#else
  if constexpr (kBytes == 16) *static_cast<uint4*>(shared_dst) = *static_cast<const uint4*>(src);
  if constexpr (kBytes == 8) *static_cast<uint2*>(shared_dst) = *static_cast<const uint2*>(src);
  if constexpr (kBytes == 4) *static_cast<uint32_t*>(shared_dst) = *static_cast<const uint32_t*>(src);
#endif
}

// The same, but writes zeros without reading src if `copy` is false.
template <int kBytes>
__device__ inline void CopyAsyncOrZero(void* shared_dst, const void* src, bool copy) {
  static_assert(kBytes == 4 || kBytes == 16, "4 or 16 bytes");
#if __CUDA_ARCH__ >= 800
  const unsigned dst = static_cast<unsigned>(__cvta_generic_to_shared(shared_dst));
  const int bytes = copy ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
  }
#else
  if constexpr (kBytes == 16) {
    *static_cast<uint4*>(shared_dst) = copy ? *static_cast<const uint4*>(src) : make_uint4(0, 0, 0, 0);
  } else {
    *static_cast<uint32_t*>(shared_dst) = copy ? *static_cast<const uint32_t*>(src) : 0;
  }
#endif
}

// Commits a group of copies.
__device__ inline void CopyAsyncCommit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most the latest kPending groups are pending.
template <int kPending>
__device__ inline void CopyAsyncWait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

// Returns sum + the four products of a's unsigned and b's signed bytes.
__device__ inline int32_t DotBytes(uint32_t a, uint32_t b, int32_t sum) {
  int32_t result;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}

// sums [16, 8] += a [16, 32] (unsigned bytes) times b [32, 8] (signed bytes), on the tensor cores, by all lanes of a
// warp. Lane 4 g + t holds rows g and g + 8: sums of columns 2 t and 2 t + 1 {g, g, g + 8, g + 8}; of a, four bytes
// from column 4 t {g, g + 8} and from 16 + 4 t {g, g + 8}; and of b, column g, four bytes from rows 4 t and 16 + 4 t.
__device__ inline void MultiplyBytes(const uint32_t (&a)[4], const uint32_t (&b)[2], int32_t (&sums)[4]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(sums[i % 2 * 2]), "+r"(sums[i % 2 * 2 + 1])
                 : "r"(a[i]), "r"(b[i / 2]));
  }
#endif
}

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_GPU_NVCC_RUNTIME_H_
