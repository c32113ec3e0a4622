#include <algorithm>

#include "core/noise.h"
#include "gpu/runtime.h"
#include "population/cuda/noise.h"

namespace neuroevo::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kMutations = 64;  // most mutations per launch, passed in the kernel's arguments

struct Mutations {
  Mutation mutation[kMutations];
  int count;
};

int Blocks(int64_t counters) { return static_cast<int>((counters + kThreads - 1) / kThreads); }

// Each thread generates the four normals of a counter. Sets theta at positions [begin, end), where begin need not be a
// multiple of 4, to from + scaled noise. from starts with position `begin`; null stands for zeros.
__global__ void Initialize(float* theta, const float* from, int64_t begin, int64_t end, uint64_t seed, float scale) {
  const int64_t counter = begin / 4 + int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (4 * counter >= end) return;
  const FourNormals normals = NormalsAt(seed, counter);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t position = 4 * counter + i;
    if (position < begin || position >= end) continue;
    theta[position] = Fma(scale, normals.value[i], from == nullptr ? 0.0f : from[position - begin]);
  }
}

// Each thread applies all mutations to the same four positions, so threads need no synchronization. The result of a
// mutation stays in registers for the next one.
__global__ void Mutate(Mutations chain, int64_t dimension) {
  const int64_t counter = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t first = 4 * counter;
  if (first >= dimension) return;
  const int count = static_cast<int>(dimension - first < 4 ? dimension - first : 4);
  float value[4] = {};
  const float* held = nullptr;  // vector whose values are in `value`
  for (int m = 0; m < chain.count; ++m) {
    const Mutation& mutation = chain.mutation[m];
    if (mutation.src != held) {
#pragma unroll
      for (int i = 0; i < 4; ++i) value[i] = i < count ? mutation.src[first + i] : 0.0f;
    }
    const FourNormals normals = NormalsAt(mutation.seed, counter);
    float scale[4] = {mutation.scale, mutation.scale, mutation.scale, mutation.scale};
    if (mutation.spread != nullptr) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scale[i] = i < count ? Mul(mutation.scale, mutation.spread[first + i]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) value[i] = Fma(scale[i], normals.value[i], value[i]);
    held = mutation.dst;
    if (m + 1 < chain.count && chain.mutation[m + 1].dst == held && chain.mutation[m + 1].src == held) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < count) mutation.dst[first + i] = value[i];
    }
  }
}

}  // namespace

namespace {

void LaunchInitialize(float* theta, const float* from, int64_t begin, int64_t count, uint64_t seed, float scale,
                      device::Stream stream) {
  if (count == 0) return;
  const int64_t end = begin + count, counters = (end + 3) / 4 - begin / 4;
  Launch(Initialize, Blocks(counters), kThreads, 0, stream, theta, from, begin, end, seed, scale);
}

}  // namespace

void InitTheta(const Network& network, uint64_t seed, float* theta, device::Stream stream) {
  for (const Layer& layer : network.layers()) {
    LaunchInitialize(theta, nullptr, layer.offset, layer.weights, seed, layer.init_scale, stream);
  }
}

void FillMember(const Network& network, const std::vector<Layer>& layers, uint64_t seed, float scale,
                const float* center, float* member, device::Stream stream) {
  for (size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers[l];
    if (layer.matrix()) {
      const int64_t count = layer.rank * (layer.inputs() + layer.out[2]);
      LaunchInitialize(member, nullptr, layer.factors, count, seed, 1.0f, stream);
    } else {
      const float* from = center + network.layers()[l].offset;
      LaunchInitialize(member, from, layer.offset, layer.weights, seed, scale, stream);
    }
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
