#include "core/noise.h"
#include "gpu/runtime.h"
#include "population/cuda/grids.h"
#include "population/cuda/noise_sum.h"

namespace neuroevo::cuda {

namespace {

constexpr int kThreads = 256;

// Each thread sums all terms for the four positions of a counter. Sums are doubles, as on the CPU: these are slow on
// most GPUs, but a generation has one sum and thousands of episodes.
template <bool kSquares>
__global__ void AddTerms(const uint64_t* seeds, const float* weights, const float* square_weights, int64_t n,
                         int64_t begin, int64_t end, int64_t first_block, float* out, float* squares) {
  const int64_t counter = begin / 4 + (first_block + blockIdx.x) * kThreads + threadIdx.x;
  if (4 * counter >= end) return;
  double sum[4] = {}, square_sum[4] = {};
  for (int64_t term = 0; term < n; ++term) {
    const FourNormals normals = NormalsAt(__ldg(seeds + term), counter);
    const double weight = __ldg(weights + term), square_weight = kSquares ? __ldg(square_weights + term) : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float z = normals.value[i];
      sum[i] += weight * double{z};  // the product is exact, so fusing does not matter
      if (kSquares) square_sum[i] += square_weight * double{SquareTerm(z)};
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t position = 4 * counter + i;
    if (position < begin || position >= end) continue;
    out[position - begin] = static_cast<float>(sum[i]);
    if (kSquares) squares[position - begin] = static_cast<float>(square_sum[i]);
  }
}

}  // namespace

void SumNoiseOnDevice(const uint64_t* seeds, const float* weights, const float* square_weights, int64_t n,
                      int64_t begin, int64_t count, float* out, float* squares, device::Stream stream) {
  const int64_t end = begin + count, counters = (end + 3) / 4 - begin / 4;
  ForGrids((counters + kThreads - 1) / kThreads, 1, [&](int64_t first_block, unsigned blocks) {
    Launch(squares == nullptr ? AddTerms<false> : AddTerms<true>, blocks, kThreads, 0, stream, seeds, weights,
           square_weights, n, begin, end, first_block, out, squares);
  });
}

}  // namespace neuroevo::cuda
