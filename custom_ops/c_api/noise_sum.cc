#include "c_api/noise_sum.h"

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "population/noise_sum.h"

extern "C" int neuroevo_noise_sum(const uint64_t* seeds, const float* weights, int64_t n, int64_t begin, int64_t count,
                                  float* out, const float* square_weights, float* squares) {
  return neuroevo::Guard([&] {
    neuroevo::CheckArray("seeds", seeds, n);
    neuroevo::CheckArray("weights", weights, n);
    neuroevo::CheckArray("out", out, count);
    neuroevo::SumNoise(neuroevo::NonZeroTerms(seeds, weights, square_weights, n), begin, count,
                       neuroevo::ProcessPool().get(), out, squares);
  });
}
