// Trace spans of GPU work; see core/trace.h.
#ifndef NEUROEVO_POPULATION_CUDA_TRACE_H_
#define NEUROEVO_POPULATION_CUDA_TRACE_H_

#include <cstdint>
#include <memory>

#include "gpu/device.h"

namespace neuroevo::cuda {

// Span of the stream's work between construction and End(). Does nothing if no trace is recorded.
class DeviceSpan {
 public:
  explicit DeviceSpan(device::Stream stream);
  ~DeviceSpan();

  void End();
  // Adds the span to the trace. Call it after the stream has been synchronized.
  void Note(const char* name, int64_t argument, const void* link);

 private:
  struct Events;
  device::Stream stream_;
  std::unique_ptr<Events> events_;
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_TRACE_H_
