// Host-side functions shared by the GPU populations.
#ifndef NEUROEVO_POPULATION_CUDA_HOST_CALLS_H_
#define NEUROEVO_POPULATION_CUDA_HOST_CALLS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "networks/network.h"
#include "population/cuda/calls.h"
#include "population/cuda/device_forward.h"

namespace neuroevo::cuda {

// Returns the indices that sort the rows (stable).
std::vector<int32_t> Sorted(const std::vector<int64_t>& rows);

// Allocates pinned host memory, which the GPU can access directly.
std::shared_ptr<char> PinnedMemory(int64_t bytes);

// Population::Forward with observations and outputs in host memory. Observations that are not in pinned memory are
// copied by the calling thread.
void ForwardFromHost(Calls* calls, DeviceForward* forward, const Network& network, const std::vector<int64_t>& rows,
                     const void* observations, float* out, const std::vector<int64_t>& states);

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_HOST_CALLS_H_
