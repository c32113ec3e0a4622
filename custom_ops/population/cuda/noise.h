// Making weights on the GPU: the bits of core/noise.h.
#ifndef NEUROEVO_POPULATION_CUDA_NOISE_H_
#define NEUROEVO_POPULATION_CUDA_NOISE_H_

#include <cstdint>
#include <vector>

#include "gpu/device.h"
#include "networks/network.h"

namespace neuroevo::cuda {

// theta = initial weights of the network from the seed. theta: device, [D].
void InitTheta(const Network& network, uint64_t seed, float* theta, device::Stream stream);

// member = the values of the member of that center with the seed and the scale. layers: the network's as its members
// have them. center: device, [D]; member: device, [F].
void FillMember(const Network& network, const std::vector<Layer>& layers, uint64_t seed, float scale,
                const float* center, float* member, device::Stream stream);

// In list order, dst = src + scale * noise(seed), [D] floats on the device each. Entries may read what earlier ones
// have written, but a spread that is not null, whose values multiply the scale, is written by none.
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
