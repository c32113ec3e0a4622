#include <algorithm>

#include "core/noise.h"
#include "gpu/runtime.h"
#include "population/cuda/noise.h"

namespace neuroevo::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kMutations = 64;  // of a chain in one launch, in the kernel's arguments

struct Mutations {
  Mutation mutation[kMutations];
  int count;
};

int Blocks(int64_t counters) { return static_cast<int>((counters + kThreads - 1) / kThreads); }

// A thread makes the four normals of a counter; [begin, end) are positions, of which begin need not be a multiple of 4.
__global__ void Initialize(float* theta, int64_t begin, int64_t end, uint64_t seed, float scale) {
  const int64_t counter = begin / 4 + int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (4 * counter >= end) return;
  const FourNormals normals = NormalsAt(seed, counter);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t position = 4 * counter + i;
    if (position >= begin && position < end) theta[position] = Fma(scale, normals.value[i], 0.0f);
  }
}

// A thread takes the same four positions through all mutations, so none waits for another. What one mutation makes
// stays in registers for the next one.
__global__ void Mutate(Mutations chain, int64_t dimension) {
  const int64_t counter = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t first = 4 * counter;
  if (first >= dimension) return;
  const int count = static_cast<int>(dimension - first < 4 ? dimension - first : 4);
  float value[4] = {};
  const float* held = nullptr;  // whose values those are
  for (int m = 0; m < chain.count; ++m) {
    const Mutation& mutation = chain.mutation[m];
    if (mutation.src != held) {
#pragma unroll
      for (int i = 0; i < 4; ++i) value[i] = i < count ? mutation.src[first + i] : 0.0f;
    }
    const FourNormals normals = NormalsAt(mutation.seed, counter);
#pragma unroll
    for (int i = 0; i < 4; ++i) value[i] = Fma(mutation.scale, normals.value[i], value[i]);
    held = mutation.dst;
    if (m + 1 < chain.count && chain.mutation[m + 1].dst == held && chain.mutation[m + 1].src == held) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < count) mutation.dst[first + i] = value[i];
    }
  }
}

}  // namespace

void InitTheta(const Network& network, uint64_t seed, float* theta, device::Stream stream) {
  for (const Layer& layer : network.layers()) {
    if (layer.weights == 0) continue;
    const int64_t end = layer.offset + layer.weights;
    const int64_t counters = (end + 3) / 4 - layer.offset / 4;
    Launch(Initialize, Blocks(counters), kThreads, 0, stream, theta, layer.offset, end, seed, layer.init_scale);
  }
}

void MutateThetas(const std::vector<Mutation>& chain, int64_t dimension, device::Stream stream) {
  for (size_t first = 0; first < chain.size(); first += kMutations) {
    Mutations part;
    part.count = static_cast<int>(std::min<size_t>(kMutations, chain.size() - first));
    std::copy_n(chain.begin() + first, part.count, part.mutation);
    Launch(Mutate, Blocks((dimension + 3) / 4), kThreads, 0, stream, part, dimension);
  }
}

}  // namespace neuroevo::cuda
