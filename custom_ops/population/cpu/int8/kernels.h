// The layers of the CPU backend for integer networks. Sums are exact, so the order of additions does not matter.
//
// Vector loads may read past the end of weights, biases, sums and inputs, by less than RowMemory::kSlack bytes; these
// values only reach lanes that are never stored or are multiplied by zero weights.
#ifndef NEUROEVO_POPULATION_CPU_INT8_KERNELS_H_
#define NEUROEVO_POPULATION_CPU_INT8_KERNELS_H_

#include <cstdint>

#include "networks/network.h"

namespace neuroevo {

// Weights of a convolution are arranged as [KH, quads, FILTERS, 4]: the KW * C taps of a kernel row, which are also
// adjacent in the image, in quads, the last of which is padded with zeros.
int64_t Int8ConvBytes(const Layer& layer);
void ArrangeInt8Conv(const Layer& layer, const int8_t* plain, int8_t* arranged);

// Output to compute: the upper left corner of its window in the padded image, the same place in the image that its sums
// were computed from, and its sums, [FILTERS].
struct Int8Pixel {
  const uint8_t* window;
  const uint8_t* before;  // nullptr, for all pixels of a call, if the sums have not been computed before
  int32_t* sums;
};

// Whether Int8Conv adds the products of what differs from the image before. Otherwise, it does not read that image.
bool Int8ConvAddsChanges();

// Computes the sums, without biases, of `count` outputs of one image with rows of in_pitch bytes.
void Int8Conv(const Layer& layer, const int8_t* weights, int64_t in_pitch, const Int8Pixel* pixels, int64_t count);

constexpr int kMaxInt8DenseSlots = 4;

// A dense layer for several slots that share the weights [inputs, units], which are read once; weights of inputs that
// are zero in every slot are not read. in[s * in_stride + i]; sums[s * sums_stride + unit], without the biases;
// sums_stride is at least Int8DenseStride(units). scratch: Int8DenseScratchBytes(inputs, slots) bytes, aligned to 64.
void Int8Dense(int64_t inputs, int64_t units, const int8_t* weights, int slots, const uint8_t* in, int64_t in_stride,
               int32_t* sums, int64_t sums_stride, uint8_t* scratch);
// The same for a single slot with input max(a - b, 0).
void Int8DenseExcess(int64_t inputs, int64_t units, const int8_t* weights, const uint8_t* a, const uint8_t* b,
                     int32_t* sums, uint8_t* scratch);
int64_t Int8DenseStride(int64_t units);
int64_t Int8DenseScratchBytes(int64_t inputs, int slots);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_INT8_KERNELS_H_
