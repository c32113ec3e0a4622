// The statistics of vbn layers. Sums are added in the order of vbn.h: one thread sums a channel of one observation,
// then one thread sums the results of all observations.
#include "gpu/runtime.h"
#include "networks/vbn.h"
#include "population/cuda/float32/tile.h"

namespace neuroevo::cuda {

namespace {

constexpr int kThreads = 256;

enum class Pass { kMeans, kFactors };  // factors are computed from deviations from the means

// Computes sums[position, channel] for all positions. total: positions times channels.
template <Pass kPass>
__global__ void __launch_bounds__(kThreads) SumObservations(VbnInputs inputs, int64_t total, double* sums) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= total) return;
  const int64_t position = i / inputs.channels, channel = i % inputs.channels;
  const float* values = Of<const float>(inputs.in, position);
  const float mean =
      kPass == Pass::kMeans ? 0 : inputs.thetas[inputs.rows[position] * inputs.stride + inputs.vbn + channel];
  double sum = 0;
#pragma unroll 8
  for (int64_t at = channel; at < inputs.values; at += inputs.channels) {
    sum += kPass == Pass::kMeans ? vbn::Term(values[at]) : vbn::SquareTerm(values[at], mean);
  }
  sums[i] = sum;
}

// total: rows times channels.
template <Pass kPass>
__global__ void __launch_bounds__(kThreads)
    SumUp(VbnInputs inputs, int64_t total, int64_t observations, const double* sums) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= total) return;
  const int64_t first = i / inputs.channels * observations, channel = i % inputs.channels;
  double sum = 0;
#pragma unroll 8
  for (int64_t o = 0; o < observations; ++o) sum += sums[(first + o) * inputs.channels + channel];
  const int64_t count = observations * (inputs.values / inputs.channels);
  float* means = inputs.thetas + inputs.rows[first] * inputs.stride + inputs.vbn;
  if (kPass == Pass::kMeans) means[channel] = vbn::Mean(sum, count);
  if (kPass == Pass::kFactors) means[inputs.channels + channel] = vbn::Factor(sum, count);
}

template <Pass kPass>
void LaunchPass(const VbnInputs& inputs, int64_t rows, int64_t observations, double* sums, device::Stream stream) {
  const auto blocks = [](int64_t threads) { return static_cast<unsigned>(CeilDivide(threads, kThreads)); };
  const int64_t row_sums = rows * inputs.channels, all_sums = observations * row_sums;
  Launch(SumObservations<kPass>, blocks(all_sums), kThreads, 0, stream, inputs, all_sums, sums);
  Launch(SumUp<kPass>, blocks(row_sums), kThreads, 0, stream, inputs, row_sums, observations,
         const_cast<const double*>(sums));
}

}  // namespace

void LaunchStatistics(const VbnInputs& inputs, int64_t rows, int64_t observations, double* sums,
                      device::Stream stream) {
  LaunchPass<Pass::kMeans>(inputs, rows, observations, sums, stream);
  LaunchPass<Pass::kFactors>(inputs, rows, observations, sums, stream);
}

}  // namespace neuroevo::cuda
