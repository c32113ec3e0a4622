#include "population/cuda/host_calls.h"

#include <algorithm>
#include <cstring>

#include "population/cuda/call.h"
#include "population/cuda/trace.h"

namespace neuroevo::cuda {

std::vector<int32_t> Sorted(const std::vector<int64_t>& rows) {
  std::vector<int32_t> order(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return rows[a] < rows[b]; });
  return order;
}

std::shared_ptr<char> PinnedMemory(int64_t bytes) {
  const auto memory = std::make_shared<device::Memory>(device::Where::kHost, bytes);
  return {memory, memory->data()};
}

void ForwardFromHost(Calls* calls, DeviceForward* forward, const Network& network, const std::vector<int64_t>& rows,
                     const void* observations, float* out, const std::vector<int64_t>& states) {
  const int64_t k = static_cast<int64_t>(rows.size());
  if (k == 0) return;
  const int64_t in_bytes = k * network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype()));
  const int64_t out_floats = k * network.output_size(), out_bytes = out_floats * static_cast<int64_t>(sizeof(float));
  calls->Run([&](Calls::Call& call) {
    call.pinned.Grow(out_bytes);
    call.on_device.Grow(PartBytes<char>(in_bytes) + PartBytes<float>(out_floats) + forward->WorkspaceBytes(k));
    Workspace parts(call.on_device.data());
    char* device_in = parts.Part<char>(in_bytes);
    float* device_out = parts.Part<float>(out_floats);
    device::CopyIn(device_in, observations, in_bytes, call.stream);
    DeviceSpan span(call.stream);
    forward->ForwardOnDevice(rows, device_in, device_out, states, parts.Part<char>(0), call.stream);
    span.End();
    device::CopyOut(call.pinned.data(), device_out, out_bytes, call.stream);
    device::Synchronize(call.stream);
    span.Note("forward", k, observations);
    memcpy(out, call.pinned.data(), out_bytes);
  });
}

}  // namespace neuroevo::cuda
