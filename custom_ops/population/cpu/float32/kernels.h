// The vectorized layers of the CPU backend. Only output channels and units are vectorized, so every sum adds its
// products in the reference's order and is bit-identical to it (for finite weights; see population/reference).
//
// Vector loads may read up to kLanes - 1 floats past the end of weights, statistics, biases, inputs and a convolution's
// outputs; these values only reach lanes that are never stored. Rows and scratch buffers have this slack.
#ifndef NEUROEVO_POPULATION_CPU_FLOAT32_KERNELS_H_
#define NEUROEVO_POPULATION_CPU_FLOAT32_KERNELS_H_

#include <cstdint>
#include <vector>

#include "networks/network.h"
#include "population/cpu/changes.h"
#include "population/cpu/float32/image_marks.h"

namespace neuroevo {

// Operations applied to a sum before it is stored, in this order. All but relu have one value per channel; null: none.
struct Epilogue {
  // Factors of a member (networks/low_rank.h): A [rank, inputs], B [rank, channels] and c; rank 0: no factors.
  const float *a = nullptr, *b = nullptr;
  float factor = 0;
  int rank = 0;
  const float *means = nullptr, *factors = nullptr;  // of a vbn layer
  const float* bias = nullptr;
  bool relu = false;
};

// Lists used by a convolution. They grow to the largest layer and are kept.
constexpr int kMostBlockPixels = 12;
struct ConvPixel {
  const float* window;      // upper left corner of its window
  const uint8_t* non_zero;  // marks at the same corner
  float* out;
};
struct ConvWord {  // taps that are adjacent in the window and share a word of marks
  int64_t place;   // offset of the first tap in the window
  int64_t weights;
  int64_t marks;  // offset from the window's first mark
  uint64_t taps;  // bit mask of the existing taps
};
struct ConvScratch {
  ImageMarks differs;              // marks values that differ from the value one stride to the right
  std::vector<ConvWord> words;     // words of the kernel, and a sentinel with the end of their weights
  std::vector<ConvPixel> pixels;   // pixels to compute
  std::vector<float*> copies;      // outputs to copy from their left neighbors, from left to right
  std::vector<float> window_copy;  // contiguous copy of the rows of a pixel's window
};

// Marks of the nonzero values of a padded image, for the convolution that reads it.
struct ConvMarks {
  ImageMarks non_zero;
  std::vector<int64_t> counts;  // marks per row
  int64_t count = 0;            // total number of marks

  static int64_t RowsRead(const Layer& layer) { return int64_t{layer.out[0] - 1} * layer.stride + layer.kernel_h; }
  // Marks an image that `layer` reads, with rows of in_pitch floats: only its changed rows, or all if changes is null.
  // Meanwhile prefetches the first of the layer's weights.
  void Set(const Layer& layer, const float* weights, const float* in, int64_t in_pitch, const Changes* changes);
};

// Convolves one image. in: padded image, rows of in_pitch floats, with its marks; out: rows of out_pitch floats.
// places: outputs to compute, y * width + x in ascending order, or null for all. flat: the image probably has areas of
// one color, as screens do, so that searching for equal windows pays; only without places. Weights of inputs that are
// zero in all pixels are not read.
void CpuConv(const Layer& layer, const float* weights, const Epilogue& epilogue, const float* in, int64_t in_pitch,
             const ConvMarks& marks, const std::vector<int64_t>* places, bool flat, float* out, int64_t out_pitch,
             ConvScratch* scratch);

// Applies a max_pool or avg_pool to one image with the same layout.
void CpuPool(const Layer& layer, const float* in, int64_t in_pitch, float* out, int64_t out_pitch);

// The cell of an lstm: gates [4 * units], state h [units], then c [units]; out: h.
void CpuCell(int units, const float* gates, float* state, float* out);

// A graph layer with inputs in[s * in_stride] and outputs out[s * out_stride] of all slots, which share the weights.
// memory: scratch space of GraphMemorySize(layer) floats, aligned to cache lines.
void CpuGraph(const Layer& layer, const float* weights, int slots, const float* in, int64_t in_stride, float* out,
              int64_t out_stride, float* memory);
int64_t GraphMemorySize(const Layer& layer);

constexpr int kMaxDenseSlots = 32;

// What a slot keeps of a dense layer for its next step: the inputs, and the sums of the inputs before each of `ends`.
struct DenseMemory {
  std::vector<float> in;
  std::vector<int64_t> ends;  // ascending; empty: nothing is known
  std::vector<float> sums;    // [ends.size(), units], units rounded up to whole vectors
};

// A dense layer for several slots that share the weights, which are read once. in[s * in_stride + i],
// out[s * out_stride + unit]; out needs kLanes floats of slack per slot. Weights of inputs that are zero in every slot
// are not read. epilogues: one per slot. list: scratch space for DenseListSize(inputs) entries. memory: of the slot,
// for these weights, if there is only one; or null.
void CpuDense(int64_t inputs, int units, const float* weights, const Epilogue* epilogues, int slots, const float* in,
              int64_t in_stride, float* out, int64_t out_stride, int32_t* list, DenseMemory* memory);
int64_t DenseListSize(int64_t inputs);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_KERNELS_H_
