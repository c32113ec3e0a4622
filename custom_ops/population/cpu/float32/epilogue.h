// What happens to the sums of a place, an output pixel or a slot: vectors go over channels.
#ifndef NEUROEVO_POPULATION_CPU_FLOAT32_EPILOGUE_H_
#define NEUROEVO_POPULATION_CPU_FLOAT32_EPILOGUE_H_

#include <algorithm>
#include <cstdint>

#include "core/simd.h"
#include "networks/low_rank.h"
#include "networks/vbn.h"
#include "population/cpu/float32/kernels.h"

namespace neuroevo {

// The dot product of networks/low_rank.h.
class PartialSums {
 public:
  PartialSums() { std::fill_n(sum_, kVectors, Floats(0.0f)); }

  // Adds the products of n adjacent inputs, of which those before were a multiple of 16.
  void Add(const float* in, const float* a, int64_t n) {
    int64_t i = 0;
    for (; i + kSums <= n; i += kSums) AddBlock(in + i, a + i);
    if (i == n) return;
    float last_in[kSums] = {}, last_a[kSums] = {};
    std::copy(in + i, in + n, last_in);
    std::copy(a + i, a + n, last_a);
    AddBlock(last_in, last_a);
  }

  float Total() const {
    float sums[kSums];
    for (int v = 0; v < kVectors; ++v) sum_[v].Store(sums + v * kLanes);
    return low_rank::Total(sums);
  }

 private:
  static constexpr int kSums = low_rank::kPartialSums, kVectors = kSums / kLanes;

  void AddBlock(const float* in, const float* a) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum_[v] = Fma(Floats::Load(in + v * kLanes), Floats::Load(a + v * kLanes), sum_[v]);
    }
  }

  Floats sum_[kVectors];
};

// t of low_rank.h for each q; none where the epilogue has no factors. dot(a): of the place's inputs with a row of A.
struct ThinProducts {
  float t[low_rank::kMaxRank];

  template <class Dot>
  ThinProducts(const Epilogue& epilogue, int64_t inputs, const Dot& dot) {
    for (int q = 0; q < epilogue.rank; ++q) t[q] = Mul(epilogue.factor, dot(epilogue.a + q * inputs));
  }
};

// In place, on the sums of all channels.
inline void Finish(const Epilogue& epilogue, const ThinProducts& thin, int channels, float* sums) {
  for (int first = 0; first < channels; first += kLanes) {
    Floats value = WithoutMinusZero(Floats::Load(sums + first));
    for (int q = 0; q < epilogue.rank; ++q) {
      value = Fma(Floats(thin.t[q]), Floats::Load(epilogue.b + int64_t{q} * channels + first), value);
    }
    if (epilogue.means != nullptr) {
      value = vbn::Normalized(value, Floats::Load(epilogue.means + first), Floats::Load(epilogue.factors + first));
    }
    if (epilogue.bias != nullptr) value = Add(value, Floats::Load(epilogue.bias + first));
    if (epilogue.relu) value = Relu(value);
    if (channels - first >= kLanes) {
      value.Store(sums + first);
    } else {
      value.StorePartial(sums + first, channels - first);
    }
  }
}

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_EPILOGUE_H_
