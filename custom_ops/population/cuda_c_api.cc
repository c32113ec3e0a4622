#include "population/cuda_c_api.h"

#include <exception>
#include <string>

#include "core/device.h"

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

}  // extern "C"
