// A network as the GPU evaluates it in integers: the rules are those of networks/int8, the results those of every
// backend.
#ifndef NEUROEVO_POPULATION_CUDA_INT8_NETWORK_H_
#define NEUROEVO_POPULATION_CUDA_INT8_NETWORK_H_

#include <cstdint>
#include <vector>

#include "gpu/device.h"
#include "networks/int8/network.h"
#include "population/cuda/call.h"
#include "population/cuda/int8/kernels.h"

namespace neuroevo::cuda {

class CudaInt8Network {
 public:
  // index: the network's, for messages. Throws Error where it cannot be evaluated in integers.
  CudaInt8Network(const Network& network, int64_t index);

  int64_t row_bytes() const;  // of a packed row, a multiple of 256

  // packed[i] = theta[i] in integers, for i < the number of rows; all on the device, the workspace too.
  int64_t QuantizeBytes(int64_t rows) const;
  void Quantize(const std::vector<const float*>& thetas, const std::vector<char*>& packed, char* workspace,
                device::Stream stream) const;

  // As CudaNetwork's; packed [R, stride] bytes, stride a multiple of 256. Of the rows, those of no slot are not read.
  int64_t WorkspaceBytes(int64_t count) const;
  void Forward(const char* packed, int64_t stride, const CallSlots& call, const uint8_t* observations, float* outputs,
               char* workspace, device::Stream stream) const;

 private:
  Int8Network network_;
  std::vector<Int8Layer> layers_;
  int64_t input_words_ = 0;    // of an observation
  int64_t largest_words_ = 0;  // of activations between layers
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_INT8_NETWORK_H_
