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

// An output to be computed: the upper left corner of its window in the padded image, and where its sums go, [FILTERS].
struct Int8Pixel {
  const uint8_t* window;
  int32_t* sums;
};

// Some outputs of one image, whose rows are in_pitch bytes, without the biases.
void Int8Conv(const Layer& layer, const int8_t* weights, int64_t in_pitch, const Int8Pixel* pixels, int64_t count);

constexpr int kMaxInt8DenseSlots = 4;

// Several inputs through the same weights [inputs, units], which are read once, and those behind inputs that are zero
// in every slot not at all. in[s * in_stride + i]; sums[s * sums_stride + unit], without the biases; sums_stride is at
// least Int8DenseStride(units). scratch: Int8DenseScratchBytes(inputs, slots) bytes, aligned to 64.
void Int8Dense(int64_t inputs, int64_t units, const int8_t* weights, int slots, const uint8_t* in, int64_t in_stride,
               int32_t* sums, int64_t sums_stride, uint8_t* scratch);
// The same of one input a - b where a is greater, and 0 elsewhere; scratch as for one slot.
void Int8DenseExcess(int64_t inputs, int64_t units, const int8_t* weights, const uint8_t* a, const uint8_t* b,
                     int32_t* sums, uint8_t* scratch);
int64_t Int8DenseStride(int64_t units);
int64_t Int8DenseScratchBytes(int64_t inputs, int slots);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_INT8_KERNELS_H_
