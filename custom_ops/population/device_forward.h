// What a backend on a GPU can do beside Population's calls, for callers that have memory and a stream of their own: the
// TensorFlow op for GPUs.
#ifndef NEUROEVO_POPULATION_DEVICE_FORWARD_H_
#define NEUROEVO_POPULATION_DEVICE_FORWARD_H_

#include <cstdint>
#include <vector>

namespace neuroevo {

class DeviceForward {
 public:
  virtual ~DeviceForward() = default;
  // Bytes of workspace for a call of count slots.
  virtual int64_t WorkspaceBytes(int64_t count) const = 0;
  // As Population::Forward, with observations, outputs and workspace (256-byte aligned) on the device: queues the work
  // on the stream, a cudaStream_t, and returns. Until the stream has come to its end, which the caller sees to, nothing
  // may fill the rows, and they may not go away.
  virtual void ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                               const std::vector<int64_t>& states, char* workspace, void* stream) = 0;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_DEVICE_FORWARD_H_
