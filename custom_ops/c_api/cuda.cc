#include "c_api/cuda.h"

#include <exception>
#include <string>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "c_api/noise_sum.h"
#include "gpu/device.h"
#include "population/cuda/noise_sum.h"

namespace {
thread_local std::string text;
}

extern "C" {

const char* neuroevo_cuda_why_not(void) {
  try {
    neuroevo::device::CheckAvailable();
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
    return text.c_str();
  }
}

const char* neuroevo_cuda_versions(void) {
  try {
    text = neuroevo::device::Versions();
  } catch (const std::exception& error) {
    text = error.what();
  }
  return text.c_str();
}

const char* neuroevo_cuda_name(void) {
  try {
    text = neuroevo::device::Name();
  } catch (const std::exception&) {
    text.clear();
  }
  return text.c_str();
}

int64_t neuroevo_cuda_free_bytes(void) {
  try {
    return neuroevo::device::FreeBytes();
  } catch (const std::exception&) {
    return 0;
  }
}

int neuroevo_cuda_noise_sum(const uint64_t* seeds, const float* weights, int64_t n, int64_t begin, int64_t count,
                            float* out, const float* square_weights, float* squares) {
  return neuroevo::Guard([&] {
    neuroevo::CheckArray("seeds", seeds, n);
    neuroevo::CheckArray("weights", weights, n);
    neuroevo::CheckArray("out", out, count);
    neuroevo::cuda::SumNoise(neuroevo::NonZeroTerms(seeds, weights, square_weights, n), begin, count, out, squares);
  });
}

}  // extern "C"
