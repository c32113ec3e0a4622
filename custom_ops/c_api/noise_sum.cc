#include "c_api/noise_sum.h"

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "population/noise_sum.h"

extern "C" int neuroevo_noise_sum(const uint64_t* seeds, const float* weights, int64_t n, int64_t begin, int64_t count,
                                  int32_t squared, float* out) {
  return neuroevo::Guard([&] {
    neuroevo::CheckArray("seeds", seeds, n);
    neuroevo::CheckArray("weights", weights, n);
    neuroevo::CheckArray("out", out, count);
    neuroevo::SumNoise(neuroevo::NonZeroTerms(seeds, weights, n), begin, count, neuroevo::ProcessPool().get(), out,
                       squared != 0);
  });
}
