// Adjacent layers of a network as the CPU backend runs them for the slots of one task: a plan of steps, made once.
//
// Layers before the first dense one run slot by slot, on images padded for their next convolution. From the first dense
// layer on, all slots of the task go through a layer together and share its weight reads. Bias, ReLU and vbn are part
// of the convolution or dense layer before them.
#ifndef NEUROEVO_POPULATION_CPU_FLOAT32_PLAN_H_
#define NEUROEVO_POPULATION_CPU_FLOAT32_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/dtype.h"
#include "networks/network.h"
#include "population/cpu/float32/kernels.h"

namespace neuroevo {

class CpuPlan {
 public:
  // The layers [begin, end), which must outlive the plan and may be none, on an input of that type and shape (uint8 is
  // multiplied by 1/255).
  CpuPlan(DType input_dtype, const std::array<int, 3>& shape, const Layer* begin, const Layer* end);

  // outs[s][:outputs] = the layers with that row's weights and statistics applied to inputs[s], for s in [0, slots),
  // slots <= kMaxDenseSlots. An output may lie where its own input is.
  void Run(const float* row, int slots, const void* const* inputs, float* const* outs) const;

  int64_t outputs() const { return outputs_; }

 private:
  // How an image lies in memory: rows of pitch floats, with a border for the convolution that reads it.
  struct Frame {
    int height = 0, width = 0, channels = 0;
    int top = 0, left = 0;  // border before the image
    int rows = 0;           // with borders
    int64_t pitch = 0;
    int64_t size() const { return rows * pitch; }
    int64_t row_values() const { return int64_t{width} * channels; }
    float* Row(float* base, int y) const { return base + (top + y) * pitch + int64_t{left} * channels; }
  };

  struct Step {
    const Layer* layer;
    const Layer *vbn = nullptr, *bias = nullptr;  // fused into a convolution or dense layer
    bool relu = false;                            // likewise
    Frame in, out;                                // steps on images

    Epilogue EpilogueFor(const float* row) const;
  };

  struct Scratches;

  static Frame FrameFor(const std::array<int, 3>& shape, const Layer* reader);
  static void ZeroBorder(const Frame& frame, float* base);
  void LoadInput(const void* input, float* base) const;
  void RunImage(const float* row, const void* input, float* features, Scratches* scratches) const;

  DType input_dtype_;
  Frame input_;
  std::vector<Step> image_steps_;  // slot by slot
  std::vector<Step> flat_steps_;   // all slots together
  int64_t image_floats_ = 0;       // of the largest frame
  int64_t features_ = 0;           // values per slot between the two
  int64_t flat_floats_ = 0;        // per slot, of the widest flat tensor
  int64_t dense_list_ = 0;         // entries, of the dense layer with most inputs
  int64_t outputs_ = 0;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_PLAN_H_
