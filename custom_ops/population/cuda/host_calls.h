// What populations on a GPU share for calls of the host.
#ifndef NEUROEVO_POPULATION_CUDA_HOST_CALLS_H_
#define NEUROEVO_POPULATION_CUDA_HOST_CALLS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "networks/network.h"
#include "population/cuda/calls.h"
#include "population/cuda/device_forward.h"

namespace neuroevo::cuda {

// The indices of the rows, by row.
std::vector<int32_t> Sorted(const std::vector<int64_t>& rows);

// Memory of the host that the GPU reads by itself.
std::shared_ptr<char> PinnedMemory(int64_t bytes);

// Forward for observations and outputs of the host. Observations that are not in pinned memory are copied by this
// thread.
void ForwardFromHost(Calls* calls, DeviceForward* forward, const Network& network, const std::vector<int64_t>& rows,
                     const void* observations, float* out, const std::vector<int64_t>& states);

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_HOST_CALLS_H_
