#include "population/cuda/host_calls.h"

#include <algorithm>
#include <cstring>

#include "population/cuda/call.h"
#include "population/cuda/trace.h"

namespace neuroevo::cuda {

namespace {

constexpr int64_t kCopyBytes = 1 << 20;  // of observations, that one task copies

}  // namespace

std::vector<int32_t> Sorted(const std::vector<int64_t>& rows) {
  std::vector<int32_t> order(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return rows[a] < rows[b]; });
  return order;
}

void ForwardFromHost(Calls* calls, ThreadPool* pool, DeviceForward* forward, const Network& network,
                     const std::vector<int64_t>& rows, const void* observations, float* out,
                     const std::vector<int64_t>& states) {
  const int64_t k = static_cast<int64_t>(rows.size());
  if (k == 0) return;
  const int64_t in_bytes = k * network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype()));
  const int64_t out_floats = k * network.output_size();
  const int64_t in_part = PartBytes<char>(in_bytes), out_part = PartBytes<float>(out_floats);
  calls->Run([&](Calls::Call& call) {
    call.pinned.Grow(in_part + out_part);
    call.on_device.Grow(in_part + out_part + forward->WorkspaceBytes(k));
    char* pinned = call.pinned.data();
    pool->ParallelFor((in_bytes + kCopyBytes - 1) / kCopyBytes, [&](int64_t task) {
      const int64_t begin = task * kCopyBytes;
      memcpy(pinned + begin, static_cast<const char*>(observations) + begin, std::min(kCopyBytes, in_bytes - begin));
    });
    Workspace parts(call.on_device.data());
    char* device_in = parts.Part<char>(in_bytes);
    float* device_out = parts.Part<float>(out_floats);
    device::CopyIn(device_in, pinned, in_bytes, call.stream);
    DeviceSpan span(call.stream);
    forward->ForwardOnDevice(rows, device_in, device_out, states, parts.Part<char>(0), call.stream);
    span.End();
    device::CopyOut(pinned + in_part, device_out, out_floats * static_cast<int64_t>(sizeof(float)), call.stream);
    device::Synchronize(call.stream);
    span.Note("forward", k, observations);
    memcpy(out, pinned + in_part, out_floats * sizeof(float));
  });
}

}  // namespace neuroevo::cuda
