// Integer network on the GPU. It follows the rules of networks/int8, so its results are bit-identical to those of every
// other backend.
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
  // index: index of the network, for messages. Throws Error if the network cannot be evaluated in integers.
  CudaInt8Network(const Network& network, int64_t index);

  int64_t row_bytes() const;  // size of a packed row, a multiple of 256

  // Quantizes thetas[i] into packed[i] for every row; all pointers and the workspace are on the device.
  int64_t QuantizeBytes(int64_t rows) const;
  void Quantize(const std::vector<const float*>& thetas, const std::vector<char*>& packed, char* workspace,
                device::Stream stream) const;

  // See CudaNetwork. packed: [R, stride] bytes, stride a multiple of 256; only the slots' rows are read.
  int64_t WorkspaceBytes(int64_t count) const;
  void Forward(const char* packed, int64_t stride, const CallSlots& call, const uint8_t* observations, float* outputs,
               char* workspace, device::Stream stream) const;

 private:
  Int8Network network_;
  std::vector<Int8Layer> layers_;
  int64_t input_words_ = 0;    // words of an observation
  int64_t largest_words_ = 0;  // most words of activations between layers
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_INT8_NETWORK_H_
