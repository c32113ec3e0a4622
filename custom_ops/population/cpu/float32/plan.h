// Adjacent layers of a network as the CPU backend runs them for the slots of one task: a plan of steps, made once.
//
// Convolutions and pools run slot by slot, on images padded for their next convolution. From the first layer on that
// flattens its input, all slots of the task go through a layer together and share its weight reads.
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
  // The layers [begin, end), which must outlive the plan and may be none, on an input of that type and shape (uint8 is
  // multiplied by 1/255).
  CpuPlan(DType input_dtype, const std::array<int, 3>& shape, const Layer* begin, const Layer* end);

  // outs[s][:outputs] = the layers with weights[s] applied to inputs[s], for s in [0, slots), slots <= kMaxDenseSlots.
  // The matrices of all are the same. An output may lie where its own input is. states[s]: from and to which a cell
  // goes; may be null where there is none. memories[s]: what this plan left there at the slot's last step (memory.h),
  // or null; may be null for all.
  void Run(const RowWeights* weights, int slots, const void* const* inputs, float* const* states,
           Float32Memory* const* memories, float* const* outs) const;

  int64_t outputs() const { return outputs_; }
  // Whether a memory saves work.
  bool convolves() const { return frames_.size() > 1; }

 private:
  // A convolution, pool, dense layer, recall, cell or graph and what follows it.
  struct Step {
    const Layer& layer;
    const Layer *vbn, *bias;         // part of a convolution or dense layer, or null
    bool relu;                       // likewise
    std::vector<const Layer*> then;  // one by one

    Epilogue EpilogueFor(const RowWeights& row) const;
  };

  struct Layers;

  DType input_dtype_;
  std::array<int, 3> shape_;
  std::vector<const Layer*> first_;  // before the first step
  std::vector<Step> steps_;
  std::vector<Frame> frames_;  // of what the steps read up to the first that flattens it, or of the outputs
  int64_t outputs_ = 0;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_PLAN_H_
