// The forward pass of a GPU backend on memory and a stream provided by the caller.
#ifndef NEUROEVO_POPULATION_CUDA_DEVICE_FORWARD_H_
#define NEUROEVO_POPULATION_CUDA_DEVICE_FORWARD_H_

#include <cstdint>
#include <vector>

#include "gpu/device.h"

namespace neuroevo::cuda {

class DeviceForward {
 public:
  virtual ~DeviceForward() = default;
  // Bytes of workspace for a call of count slots.
  virtual int64_t WorkspaceBytes(int64_t count) const = 0;
  // Like Population::Forward, but without checks and with observations, outputs and workspace (256-byte aligned) on the
  // device: queues the work on the stream and returns. The caller must synchronize the stream before the rows are
  // refilled or destroyed.
  virtual void ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                               const std::vector<int64_t>& states, char* workspace, device::Stream stream) = 0;
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_DEVICE_FORWARD_H_
