// Generation of weights on the GPU, bit-identical to core/noise.h.
#ifndef NEUROEVO_POPULATION_CUDA_NOISE_H_
#define NEUROEVO_POPULATION_CUDA_NOISE_H_

#include <cstdint>
#include <vector>

#include "gpu/device.h"
#include "networks/network.h"

namespace neuroevo::cuda {

// theta = initial weights of the network from the seed. theta: device, [D].
void InitTheta(const Network& network, uint64_t seed, float* theta, device::Stream stream);

// Sets `member` to the values of the member with that center, seed and scale. layers: the network's layers with the
// layout of members. center: device, [D]; member: device, [F].
void FillMember(const Network& network, const std::vector<Layer>& layers, uint64_t seed, float scale,
                const float* center, float* member, device::Stream stream);

// In list order, dst = src + scale * noise(seed), each [D] floats on the device. Entries may read vectors written by
// earlier ones. spread, if not null, multiplies the scale elementwise, and no entry may write it.
struct Mutation {
  float* dst;
  const float* src;
  uint64_t seed;
  float scale;
  const float* spread;
};
void MutateThetas(const std::vector<Mutation>& chain, int64_t dimension, device::Stream stream);

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_NOISE_H_
