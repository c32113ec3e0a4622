// When the GPU was at work for a call, in the trace; see core/trace.h.
#ifndef NEUROEVO_POPULATION_CUDA_TRACE_H_
#define NEUROEVO_POPULATION_CUDA_TRACE_H_

#include <cstdint>
#include <memory>

#include "gpu/device.h"

namespace neuroevo::cuda {

// The stream's work between making and End(). Where no trace is recorded it does nothing.
class DeviceSpan {
 public:
  explicit DeviceSpan(device::Stream stream);
  ~DeviceSpan();

  void End();
  // Once the stream has been synchronized.
  void Note(const char* name, int64_t argument, const void* link);

 private:
  struct Events;
  device::Stream stream_;
  std::unique_ptr<Events> events_;
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_TRACE_H_
