// Float32 network on the GPU. Every result is bit-identical to population/reference.
#ifndef NEUROEVO_POPULATION_CUDA_FLOAT32_NETWORK_H_
#define NEUROEVO_POPULATION_CUDA_FLOAT32_NETWORK_H_

#include <cstdint>
#include <vector>

#include "gpu/device.h"
#include "networks/network.h"
#include "population/cuda/call.h"

namespace neuroevo::cuda {

struct Tensors;

enum class Activation { kNone, kRelu, kTanh, kLeakyRelu, kSilu, kGelu };

// Step of a network: a convolution, a dense layer or neither, followed by optional vbn, bias and activation, or a
// single layer of another kind. An activation other than ReLU or tanh is a separate step, kNeither.
struct Step {
  enum class Kind { kConv, kDense, kNeither, kPool, kLayerNorm, kRecall, kCell };
  Kind kind;
  Layer layer;        // for kNeither, only in, out and slope are used
  int64_t vbn = -1;   // offset of its statistics in a row; -1: no vbn
  int64_t bias = -1;  // offset in a row; -1: no bias
  Activation activation = Activation::kNone;
};

// Returns the steps of the layers, in order, for an input of that type. Only the first step reads uint8, and it is then
// a convolution or kNeither.
std::vector<Step> StepsOf(DType input, const std::vector<Layer>& layers);
inline std::vector<Step> StepsOf(const Network& network) { return StepsOf(network.input_dtype(), network.layers()); }

class CudaNetwork {
 public:
  explicit CudaNetwork(const Network& network) : CudaNetwork(network, network.layers()) {}
  // layers: the network's layers, or the layers of its members.
  CudaNetwork(const Network& network, const std::vector<Layer>& layers);

  // Returns the workspace that Forward needs for a call of `count` slots.
  int64_t WorkspaceBytes(int64_t count) const;

  // outputs[slot, :A] = this network with theta of the slot's row applied to observations[slot], for the call's slots.
  // thetas [R, stride] floats, observations [K, ...] and outputs [K, A] are on the device, as is the workspace. Queues
  // kernels on the stream without allocating or waiting. A slot's result does not depend on the other slots. states:
  // for recurrent networks, indexed by call.states. members: required if the layers are those of members.
  void Forward(const float* thetas, int64_t stride, const CallSlots& call, const void* observations,
               const States& states, float* outputs, char* workspace, device::Stream stream,
               const MemberMemory& members = {}) const;

  // Returns the workspace that Prepare needs for that many rows and reference observations.
  int64_t PrepareBytes(int64_t rows, int64_t observations) const;

  // Computes the statistics of the vbn layers of a call's positions and stores them, for Forward, behind the thetas or
  // members' values. call: one position per row or member. reference: [observations, ...] on the device, as is the
  // workspace. The other arguments are those of Forward.
  void Prepare(float* thetas, int64_t stride, const CallSlots& call, const void* reference, int64_t observations,
               char* workspace, device::Stream stream, const MemberMemory& members = {}) const;

 private:
  struct Positions;
  void Run(const Step& step, const Positions& positions, const Tensors& in, const Tensors& out) const;

  Network network_;
  std::vector<Step> steps_;
  int multiprocessors_;
  int64_t pitch_[2] = {0, 0};          // floats per position of the outputs of steps with even and odd numbers
  size_t prepared_steps_ = 0;          // number of steps up to the last one with vbn
  int64_t prepare_pitch_[2] = {0, 0};  // like pitch_, for the prepared steps
  int64_t prepare_channels_ = 0;       // most channels of a vbn
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_FLOAT32_NETWORK_H_
