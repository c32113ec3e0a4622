// A network as the GPU evaluates it, in float32: every result is, bit for bit, what population/reference defines.
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

// A convolution, a dense layer or neither, and the vbn, bias and activation that follow it, each of which may be
// missing; an activation other than ReLU or tanh is a step of its own, kNeither. Or one layer of another kind.
struct Step {
  enum class Kind { kConv, kDense, kNeither, kPool, kLayerNorm, kRecall, kCell };
  Kind kind;
  Layer layer;        // of kNeither, only in, out and slope count
  int64_t vbn = -1;   // offset in a row of its statistics; -1: there is none
  int64_t bias = -1;  // offset in a row; -1: there is none
  Activation activation = Activation::kNone;
};

// What the layers do to an input of that type, in order. Only a convolution or kNeither, as the first step, reads
// uint8.
std::vector<Step> StepsOf(DType input, const std::vector<Layer>& layers);
inline std::vector<Step> StepsOf(const Network& network) { return StepsOf(network.input_dtype(), network.layers()); }

class CudaNetwork {
 public:
  explicit CudaNetwork(const Network& network) : CudaNetwork(network, network.layers()) {}
  // layers: the network's, or those of its members.
  CudaNetwork(const Network& network, const std::vector<Layer>& layers);

  // Of Forward, for a call of count slots.
  int64_t WorkspaceBytes(int64_t count) const;

  // outputs[slot, :A] = this network with theta of the slot's row applied to observations[slot], for the call's slots.
  // thetas [R, stride] floats, observations [K, ...] and outputs [K, A] are on the device, as is the workspace. Queues
  // kernels on the stream; neither allocates nor waits. What a slot gets does not depend on the other slots. states: of
  // a recurrent network; that of a position is call.states of it. members: where the layers are those of members.
  void Forward(const float* thetas, int64_t stride, const CallSlots& call, const void* observations,
               const States& states, float* outputs, char* workspace, device::Stream stream,
               const MemberMemory& members = {}) const;

  // Of Prepare, for that many rows and reference observations.
  int64_t PrepareBytes(int64_t rows, int64_t observations) const;

  // Computes the statistics of the vbn layers of a call's positions, which Forward finds behind their thetas or the
  // members' values. call: a position for each row or member. reference: [observations, ...] on the device, as is the
  // workspace. Otherwise as Forward.
  void Prepare(float* thetas, int64_t stride, const CallSlots& call, const void* reference, int64_t observations,
               char* workspace, device::Stream stream, const MemberMemory& members = {}) const;

 private:
  struct Positions;
  void Run(const Step& step, const Positions& positions, const Tensors& in, const Tensors& out) const;

  Network network_;
  std::vector<Step> steps_;
  int multiprocessors_;
  int64_t pitch_[2] = {0, 0};  // floats per position of what the steps with even and odd numbers leave to the next one
  size_t prepared_steps_ = 0;  // up to the last one with vbn
  int64_t prepare_pitch_[2] = {0, 0};  // as pitch_, of these
  int64_t prepare_channels_ = 0;       // the most of a vbn
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_FLOAT32_NETWORK_H_
