#include <algorithm>
#include <cstring>

#include "gpu/runtime.h"
#include "population/cuda/call.h"

namespace neuroevo::cuda {

namespace {

constexpr int kWords = 1000;  // every GPU and driver allows 4096 bytes of kernel arguments
// The lanes of a warp read arguments one word after another, so the work is spread over many multiprocessors.
constexpr int kThreads = 32;

struct Words {
  uint32_t word[kWords];
};

__global__ void StoreWords(Words words, int count, uint32_t* dst) {
  const int i = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (i < count) dst[i] = words.word[i];
}

__global__ void StoreZeros(int64_t count, uint32_t* dst) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) dst[i] = 0;
}

}  // namespace

void Zero(void* device, int64_t bytes, device::Stream stream) {
  const int64_t count = bytes / 4;
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  Launch(StoreZeros, blocks, kThreads, 0, stream, count, static_cast<uint32_t*>(device));
}

void Upload(void* device_dst, const void* host_src, int64_t bytes, device::Stream stream) {
  uint32_t* dst = static_cast<uint32_t*>(device_dst);
  const char* src = static_cast<const char*>(host_src);
  for (int64_t left = bytes / 4; left > 0; left -= kWords, dst += kWords, src += 4 * kWords) {
    Words words;
    const int count = static_cast<int>(std::min<int64_t>(left, kWords));
    memcpy(words.word, src, 4 * count);
    Launch(StoreWords, (count + kThreads - 1) / kThreads, kThreads, 0, stream, words, count, dst);
  }
}

}  // namespace neuroevo::cuda
