// The vectorised layers of the CPU backend. Vectors go over output channels and units only, so every sum takes its
// products in the reference's order and has the reference's bits (for finite weights; see reference.cc).
//
// Vector loads may run up to kLanes - 1 floats over the end of weights, biases and inputs; what they find there goes
// into lanes that are never stored. Rows of a population and the scratch buffers have that slack.
#ifndef NEUROEVO_POPULATION_CPU_KERNELS_H_
#define NEUROEVO_POPULATION_CPU_KERNELS_H_

#include <cstdint>

#include "population/network.h"

namespace neuroevo {

// What happens to a sum before it is stored.
struct Epilogue {
  const float* bias = nullptr;  // one per channel, or none
  bool relu = false;
};

// One image. in: the padded image, rows of in_pitch floats; out: rows of out_pitch floats.
void CpuConv(const Layer& layer, const float* weights, const Epilogue& epilogue, const float* in, int64_t in_pitch,
             float* out, int64_t out_pitch);

constexpr int kMaxDenseSlots = 8;

// Several inputs through the same weights, which are read once. in[s * in_stride + i], out[s * out_stride + unit];
// out needs kLanes floats of slack per slot. Weights behind inputs that are zero in every slot are not read.
// scratch: DenseScratchFloats(inputs, slots) floats.
void CpuDense(int64_t inputs, int units, const float* weights, const Epilogue& epilogue, int slots, const float* in,
              int64_t in_stride, float* out, int64_t out_stride, float* scratch);
int64_t DenseScratchFloats(int64_t inputs, int slots);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_KERNELS_H_
