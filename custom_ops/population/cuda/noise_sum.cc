#include "population/cuda/noise_sum.h"

#include "population/cuda/call.h"
#include "population/cuda/calls.h"

namespace neuroevo::cuda {

void SumNoise(const NoiseTerms& terms, int64_t begin, int64_t count, float* out, float* squares) {
  device::CheckAvailable();
  CheckPositions(begin, count);
  if (count == 0) return;
  const int64_t n = static_cast<int64_t>(terms.seeds.size());
  const int64_t seed_bytes = n * static_cast<int64_t>(sizeof(uint64_t));
  const int64_t weight_bytes = n * static_cast<int64_t>(sizeof(float));
  const int64_t out_bytes = count * static_cast<int64_t>(sizeof(float));
  Calls calls;
  calls.Run([&](Calls::Call& call) {
    call.on_device.Grow(PartBytes<uint64_t>(n) + 2 * PartBytes<float>(n) + 2 * PartBytes<float>(count));
    Workspace parts(call.on_device.data());
    uint64_t* seeds = parts.Part<uint64_t>(n);
    float *weights = parts.Part<float>(n), *square_weights = parts.Part<float>(n);
    float* sums = parts.Part<float>(count);
    float* square_sums = squares == nullptr ? nullptr : parts.Part<float>(count);
    if (n > 0) {
      device::CopyIn(seeds, terms.seeds.data(), seed_bytes, call.stream);
      device::CopyIn(weights, terms.weights.data(), weight_bytes, call.stream);
      device::CopyIn(square_weights, terms.square_weights.data(), weight_bytes, call.stream);
    }
    SumNoiseOnDevice(seeds, weights, square_weights, n, begin, count, sums, square_sums, call.stream);
    device::CopyOut(out, sums, out_bytes, call.stream);
    if (squares != nullptr) device::CopyOut(squares, square_sums, out_bytes, call.stream);
  });
}

}  // namespace neuroevo::cuda
