// The layers of the CPU backend for integer networks. Sums are exact, so how they are cut up changes no bit.
//
// Vector loads may run over the end of weights, biases, sums and inputs, by less than RowMemory::kSlack bytes; what
// they find there goes into lanes that are never stored, or is multiplied by a weight that is zero.
#ifndef NEUROEVO_POPULATION_CPU_INT8_KERNELS_H_
#define NEUROEVO_POPULATION_CPU_INT8_KERNELS_H_

#include <cstdint>

#include "networks/network.h"

namespace neuroevo {

// Weights of a convolution are arranged as [KH, quads, FILTERS, 4]: a kernel row's taps KW * C, adjacent in the image
// too, in quads, the last one filled up with zeros.
int64_t Int8ConvBytes(const Layer& layer);
void ArrangeInt8Conv(const Layer& layer, const int8_t* plain, int8_t* arranged);

// One image. in: the padded image, rows of in_pitch bytes; bias: [FILTERS]; sums: [OH, OW, FILTERS].
void Int8Conv(const Layer& layer, const int8_t* weights, const int32_t* bias, const uint8_t* in, int64_t in_pitch,
              int32_t* sums);

constexpr int kMaxInt8DenseSlots = 4;

// Several inputs through the same weights [inputs, units], which are read once, and those behind inputs that are zero
// in every slot not at all. in[s * in_stride + i]; sums[s * sums_stride + unit], without the biases; sums_stride is at
// least Int8DenseStride(units). scratch: Int8DenseScratchBytes(inputs, slots) bytes, aligned to 64.
void Int8Dense(int64_t inputs, int64_t units, const int8_t* weights, int slots, const uint8_t* in, int64_t in_stride,
               int32_t* sums, int64_t sums_stride, uint8_t* scratch);
int64_t Int8DenseStride(int64_t units);
int64_t Int8DenseScratchBytes(int64_t inputs, int slots);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_INT8_KERNELS_H_
