// Postprocessing of the sums of a place (an output pixel or a slot), vectorized over channels.
#ifndef NEUROEVO_POPULATION_CPU_FLOAT32_EPILOGUE_H_
#define NEUROEVO_POPULATION_CPU_FLOAT32_EPILOGUE_H_

#include <algorithm>
#include <cstdint>

#include "core/simd.h"
#include "networks/low_rank.h"
#include "networks/vbn.h"
#include "population/cpu/float32/kernels.h"

namespace neuroevo {

// Partial sums of the dot product defined in networks/low_rank.h.
class PartialSums {
 public:
  PartialSums() { std::fill_n(sum_, kVectors, Floats(0.0f)); }

  // Adds the products of n adjacent inputs. The number of inputs added before must be a multiple of 16.
  void Add(const float* in, const float* a, int64_t n) {
    int64_t i = 0;
    for (; i + kSums <= n; i += kSums) AddBlock(in + i, a + i);
    if (i == n) return;
    float last_in[kSums] = {}, last_a[kSums] = {};
    std::copy(in + i, in + n, last_in);
    std::copy(a + i, a + n, last_a);
    AddBlock(last_in, last_a);
  }

  // The same for n a multiple of 16 and kPlaces places at once, which hides the latency of the additions.
  template <int kPlaces>
  static void Add(const float* const (&in)[kPlaces], const float* a, int64_t n, PartialSums (&sums)[kPlaces]) {
    for (int64_t i = 0; i < n; i += kSums) {
#pragma GCC unroll 8
      for (int p = 0; p < kPlaces; ++p) sums[p].AddBlock(in[p] + i, a + i);
    }
  }

  float Total() const {
    float sums[kSums];
    for (int v = 0; v < kVectors; ++v) sum_[v].Store(sums + v * kLanes);
    return low_rank::Total(sums);
  }

  static constexpr int kSums = low_rank::kPartialSums;

 private:
  static constexpr int kVectors = kSums / kLanes;

  void AddBlock(const float* in, const float* a) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum_[v] = Fma(Floats::Load(in + v * kLanes), Floats::Load(a + v * kLanes), sum_[v]);
    }
  }

  Floats sum_[kVectors];
};

// Finishes the sums of `count` places in place: adds the contribution of a member's factors, then applies the rest of
// the epilogue. thin[q * count + i]: t of low_rank.h for place i; sums(i): pointer to the channels of place i.
template <class SumsAt>
inline void Finish(const Epilogue& epilogue, const float* thin, int count, int channels, const SumsAt& sums) {
  for (int first = 0; first < channels; first += kLanes) {
    const bool normalizes = epilogue.means != nullptr;
    const Floats mean = normalizes ? Floats::Load(epilogue.means + first) : Floats(0.0f);
    const Floats factor = normalizes ? Floats::Load(epilogue.factors + first) : Floats(1.0f);
    const Floats bias = epilogue.bias != nullptr ? Floats::Load(epilogue.bias + first) : Floats(0.0f);
    const int lanes = std::min(kLanes, channels - first);
    for (int i = 0; i < count; ++i) {
      float* place = sums(i) + first;
      Floats value = WithoutMinusZero(Floats::Load(place));
      for (int q = 0; q < epilogue.rank; ++q) {
        value = Fma(Floats(thin[q * count + i]), Floats::Load(epilogue.b + int64_t{q} * channels + first), value);
      }
      if (normalizes) value = vbn::Normalized(value, mean, factor);
      if (epilogue.bias != nullptr) value = Add(value, bias);
      if (epilogue.relu) value = Relu(value);
      if (lanes == kLanes) {
        value.Store(place);
      } else {
        value.StorePartial(place, lanes);
      }
    }
  }
}

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_EPILOGUE_H_
