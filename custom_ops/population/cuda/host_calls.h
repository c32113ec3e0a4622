// What populations on a GPU share for calls of the host.
#ifndef NEUROEVO_POPULATION_CUDA_HOST_CALLS_H_
#define NEUROEVO_POPULATION_CUDA_HOST_CALLS_H_

#include <cstdint>
#include <vector>

#include "core/thread_pool.h"
#include "networks/network.h"
#include "population/cuda/calls.h"
#include "population/device_forward.h"

namespace neuroevo::cuda {

// The indices of the rows, by row.
std::vector<int32_t> Sorted(const std::vector<int64_t>& rows);

// Forward for observations and outputs of the host: through pinned memory, which the GPU reads by itself.
void ForwardFromHost(Calls* calls, ThreadPool* pool, DeviceForward* forward, const Network& network,
                     const std::vector<int64_t>& rows, const void* observations, float* out,
                     const std::vector<int64_t>& states);

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_HOST_CALLS_H_
