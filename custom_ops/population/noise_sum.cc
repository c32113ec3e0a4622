#include "population/noise_sum.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/noise.h"

namespace neuroevo {

namespace {

// Positions per task, whose sums stay in the L1 cache while all terms are added. Smaller if there would be too few
// tasks for the threads, but large enough to amortize setting up a seed; multiples of the block size of noise.cc.
constexpr int64_t kMaxChunk = 2048, kMinChunk = 256;
constexpr int64_t kTasksPerThread = 8;

constexpr int64_t kMaxEnd = int64_t{1} << 62;  // so that rounding up does not overflow

int64_t ChunkFor(int64_t count, int threads, int64_t most) {
  const int64_t share = count / (threads * kTasksPerThread) / kMinChunk * kMinChunk;
  return std::clamp(share, kMinChunk, most);
}

}  // namespace

NoiseTerms NonZeroTerms(const uint64_t* seeds, const float* weights, const float* square_weights, int64_t n) {
  if (n < 0) ThrowInvalid("the number of seeds is ", n, ", expected 0 or more");
  NoiseTerms terms;
  for (int64_t i = 0; i < n; ++i) {
    const float square = square_weights == nullptr ? 0.0f : square_weights[i];
    if (!std::isfinite(weights[i])) ThrowInvalid("weight ", i, " is ", weights[i], ", expected a finite number");
    if (!std::isfinite(square)) ThrowInvalid("square weight ", i, " is ", square, ", expected a finite number");
    if (weights[i] == 0 && square == 0) continue;
    terms.seeds.push_back(seeds[i]);
    terms.weights.push_back(weights[i]);
    terms.square_weights.push_back(square);
  }
  return terms;
}

void CheckPositions(int64_t begin, int64_t count) {
  if (begin < 0 || begin > kMaxEnd || count < 0 || count > kMaxEnd - begin) {
    ThrowInvalid("begin is ", begin, " and count is ", count, ", expected both at least 0 and a sum of at most 2^62");
  }
}

void SumNoise(const NoiseTerms& terms, int64_t begin, int64_t count, ThreadPool* pool, float* out, float* squares) {
  CheckPositions(begin, count);
  const int64_t chunk = ChunkFor(count, pool->threads(), squares == nullptr ? kMaxChunk : kMaxChunk / 2);
  pool->ParallelFor((count + chunk - 1) / chunk, [&](int64_t task) {
    const int64_t first = task * chunk, n = std::min(chunk, count - first);
    alignas(64) double sums[kMaxChunk] = {};
    double* square_sums = squares == nullptr ? nullptr : sums + kMaxChunk / 2;
    for (size_t i = 0; i < terms.seeds.size(); ++i) {
      AccumulateNoise(terms.seeds[i], begin + first, n, terms.weights[i], sums, terms.square_weights[i], square_sums);
    }
    for (int64_t i = 0; i < n; ++i) {
      out[first + i] = static_cast<float>(sums[i]);
      if (squares != nullptr) squares[first + i] = static_cast<float>(square_sums[i]);
    }
  });
}

}  // namespace neuroevo
