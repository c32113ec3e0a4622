// Execution plan of adjacent layers of a network on the CPU backend, built once and run for the slots of one task.
//
// Convolutions and pools run slot by slot, on images padded for the next convolution. Starting with the first layer
// that flattens its input, each layer is evaluated for all slots of the task together, which share its weight reads.
#ifndef NEUROEVO_POPULATION_CPU_FLOAT32_PLAN_H_
#define NEUROEVO_POPULATION_CPU_FLOAT32_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/dtype.h"
#include "networks/network.h"
#include "population/cpu/float32/kernels.h"
#include "population/cpu/float32/memory.h"
#include "population/cpu/frame.h"
#include "population/row_weights.h"

namespace neuroevo {

class CpuPlan {
 public:
  // Plans the layers [begin, end), an optionally empty range that must outlive the plan, for an input of that type and
  // shape (uint8 is multiplied by 1/255).
  CpuPlan(DType input_dtype, const std::array<int, 3>& shape, const Layer* begin, const Layer* end);

  // outs[s][:outputs] = the layers with weights[s] applied to inputs[s], for s in [0, slots), slots <= kMaxDenseSlots.
  // All slots share the matrices. An output may alias the slot's own input. states[s]: state that a cell reads and
  // updates; states may be null without cells. memories[s]: cache of this plan for the slot (memory.h), or null;
  // memories may be null, too.
  void Run(const RowWeights* weights, int slots, const void* const* inputs, float* const* states,
           Float32Memory* const* memories, float* const* outs) const;

  int64_t outputs() const { return outputs_; }
  // Returns whether a memory can save work.
  bool convolves() const { return frames_.size() > 1; }

 private:
  // A convolution, pool, dense layer, recall, cell or graph and the layers that follow it.
  struct Step {
    const Layer& layer;
    const Layer *vbn, *bias;         // fused into a convolution or dense layer, or null
    bool relu;                       // whether a relu is fused
    std::vector<const Layer*> then;  // applied elementwise afterwards

    Epilogue EpilogueFor(const RowWeights& row) const;
  };

  struct Layers;

  DType input_dtype_;
  std::array<int, 3> shape_;
  std::vector<const Layer*> first_;  // elementwise layers before the first step
  std::vector<Step> steps_;
  std::vector<Frame> frames_;  // inputs of the steps up to the first that flattens its input, or the outputs
  int64_t outputs_ = 0;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_PLAN_H_
