// Arguments and launchers of the kernels of integer networks, for the files in this folder.
//
// A slot's activations are bytes [height][width][channels], with channels padded to multiples of 4: words of four
// channels are the operands of the arithmetic, and a slot's words are padded to a multiple of 4. The weights of a unit
// (or filter) have the same order, [units][KH][KW][channels]: a dense layer is a convolution whose kernel is as large
// as its input. They are padded to a multiple of 4 segments of 16 bytes, and units to a multiple of those of a block.
// All padding is zero.
#ifndef NEUROEVO_POPULATION_CUDA_INT8_KERNELS_H_
#define NEUROEVO_POPULATION_CUDA_INT8_KERNELS_H_

#include <cstdint>

#include "gpu/device.h"
#include "networks/int8/rules.h"
#include "population/cuda/grids.h"

namespace neuroevo::cuda {

constexpr int kSegment = 16;      // bytes
constexpr int kConvFilters = 32;  // filters and units are padded to multiples of these
constexpr int kDenseUnits = 16;

// Division by multiplication: exact as long as number * divisor < 2^32.
struct Divider {
  uint64_t magic = 0;
  explicit Divider(int divisor = 1) : magic(((uint64_t{1} << 32) + divisor - 1) / divisor) {}
  NEUROEVO_HD int operator()(int number) const { return static_cast<int>(static_cast<uint32_t>(number) * magic >> 32); }
};

// Convolution or dense layer with its bias.
struct Int8Layer {
  int index;                          // index of the layer in the network
  int in_height, in_width, in_words;  // in_words: words per pixel
  int kernel_h, kernel_w, stride, pad_top, pad_left;
  int out_width, pixels, outputs;  // pixels: output pixels
  int segments;                    // per unit
  Divider kernel_width, pixel_words, pixel_segments;
  int64_t weights_place;
  int64_t bias_place;  // -1: no bias
  bool relu_at_the_end;

  NEUROEVO_HD int padded_outputs() const { return (outputs + 3) / 4 * 4; }
  // Words of a slot's activations after and before the layer.
  NEUROEVO_HD int64_t out_words() const { return (int64_t{pixels} * (padded_outputs() / 4) + 3) / 4 * 4; }
  NEUROEVO_HD int64_t input_words() const { return (int64_t{in_height} * in_width * in_words + 3) / 4 * 4; }
};

// Arguments of a call for one layer. count: number of positions of the call.
struct Int8Call {
  const char* packed;
  int64_t stride;               // bytes from row to row
  const int32_t *slots, *rows;  // [count]
  const uint32_t* input;        // words [count, input_words], or [slots, input_words] if by_slot
  bool by_slot;
  const int32_t* exponents;  // of the input, [count]; null: all are 0
  int32_t* sums;             // [count, 4 * out_words]
  int32_t* largest;          // [count], initially 0
  float* outputs;            // [slots, A] for the last layer, which stores no sums; otherwise null
};

// Slots that evaluate one row: at most kSharedSlots positions starting at `first`.
constexpr int kSharedSlots = 32;
struct SharedSlots {
  int32_t first, count;
};

void SumConv(const Int8Layer& layer, const Int8Call& call, int64_t count, device::Stream stream);
// SumDense computes any slots: positions[0, count), or [0, count) if positions is null.
void SumDense(const Int8Layer& layer, const Int8Call& call, const int32_t* positions, int64_t count,
              device::Stream stream);
void SumSharedDense(const Int8Layer& layer, const Int8Call& call, const SharedSlots* shared, int64_t count,
                    device::Stream stream);

// Converts a layer's sums to bytes [count, out_words] with exponents [count].
void MakeActivations(const Int8Layer& layer, const Int8Call& call, uint32_t* bytes, int32_t* exponents, int64_t count,
                     device::Stream stream);
// words [count, input_words] = the slots' observations [slots, in_height, in_width, channels].
void PadObservations(const Int8Layer& layer, const int32_t* slots, const uint8_t* observations, int channels,
                     uint32_t* words, int64_t count, device::Stream stream);

// Quantization of a layer. Its tasks are pieces of its weights and tiles of its packed bytes.
struct QuantizedLayer {
  int64_t offset, bias_offset;  // in theta; -1: no bias
  int64_t weights_place, bias_place;
  int64_t inputs, outputs;    // inputs per unit; units
  int64_t unit_bytes, units;  // both padded
  int channels, pixel_bytes;  // pixel_bytes: channels, padded
  int64_t first_piece, first_tile;
};
struct QuantizedNetwork {
  QuantizedLayer layer[int8::kMaxLayers];
  int layers;
  int64_t pieces, tiles;  // per row
};
struct QuantizedRow {
  const float* theta;
  char* packed;
};
constexpr int kPieceWeights = 16384;
constexpr int kTileBytes = 64, kTileUnits = 64;

// Sets largest [rows, layers], initially 0, to int8::AbsoluteBits of the largest weights.
void FindLargestWeights(const QuantizedNetwork& network, const QuantizedRow* rows, int64_t count, uint32_t* largest,
                        device::Stream stream);
void PackWeights(const QuantizedNetwork& network, const QuantizedRow* rows, int64_t count, const uint32_t* largest,
                 device::Stream stream);

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_INT8_KERNELS_H_
