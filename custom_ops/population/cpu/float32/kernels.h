// The vectorized layers of the CPU backend. Vectors go over output channels and units only, so every sum takes its
// products in the reference's order and has the reference's bits (for finite weights; see population/reference).
//
// Vector loads may run up to kLanes - 1 floats over the end of weights, statistics, biases, inputs and a convolution's
// outputs; what they find there goes into lanes that are never stored. Rows of a population and the scratch buffers
// have that slack.
#ifndef NEUROEVO_POPULATION_CPU_FLOAT32_KERNELS_H_
#define NEUROEVO_POPULATION_CPU_FLOAT32_KERNELS_H_

#include <cstdint>
#include <vector>

#include "networks/network.h"
#include "population/cpu/changes.h"
#include "population/cpu/float32/image_marks.h"

namespace neuroevo {

// What happens to a sum before it is stored, in this order. All but relu are one per channel, or none.
struct Epilogue {
  // Of a member (networks/low_rank.h): A [rank, inputs], B [rank, channels] and c; or none.
  const float *a = nullptr, *b = nullptr;
  float factor = 0;
  int rank = 0;
  const float *means = nullptr, *factors = nullptr;  // of a vbn layer
  const float* bias = nullptr;
  bool relu = false;
};

// Where a convolution keeps its lists. They grow to the largest layer and stay.
constexpr int kMostBlockPixels = 12;
struct ConvPixel {
  const float* window;      // its upper left corner
  const uint8_t* non_zero;  // likewise
  float* out;
};
struct ConvWord {  // taps that are adjacent in the window and share a word of marks
  int64_t place;   // of the first one, in the window
  int64_t weights;
  int64_t marks;  // from the window's first one on
  uint64_t taps;  // which there are
};
struct ConvScratch {
  ImageMarks differs;              // of values: from the one that is a window's step to the right
  std::vector<ConvWord> words;     // of the kernel, and where their weights end
  std::vector<ConvPixel> pixels;   // to be computed
  std::vector<float*> copies;      // outputs to be copied from their left neighbors, from left to right
  std::vector<float> window_copy;  // of a pixel, its rows one after the other
};

// Which values of a padded image are not zero, for the convolution that reads it.
struct ConvMarks {
  ImageMarks non_zero;
  std::vector<int64_t> counts;  // of each row
  int64_t count = 0;            // of all

  static int64_t RowsRead(const Layer& layer) { return int64_t{layer.out[0] - 1} * layer.stride + layer.kernel_h; }
  // For an image that `layer` reads, rows of in_pitch floats: marks those that have changed, or all where changes is
  // null. Meanwhile the first of the layer's weights come to the cache.
  void Set(const Layer& layer, const float* weights, const float* in, int64_t in_pitch, const Changes* changes);
};

// One image. in: the padded image, rows of in_pitch floats, with its marks; out: rows of out_pitch floats. places: the
// outputs to be computed, y * width + x in ascending order, or null for all of them. flat: the image probably has areas
// of one color, as screens do, so that it pays to look for equal windows; with no places only. Weights behind inputs
// that are zero in all pixels are not read.
void CpuConv(const Layer& layer, const float* weights, const Epilogue& epilogue, const float* in, int64_t in_pitch,
             const ConvMarks& marks, const std::vector<int64_t>* places, bool flat, float* out, int64_t out_pitch,
             ConvScratch* scratch);

// One image, likewise, through a max_pool or avg_pool.
void CpuPool(const Layer& layer, const float* in, int64_t in_pitch, float* out, int64_t out_pitch);

// The cell of an lstm: gates [4 * units], state h [units], then c [units]; out: h.
void CpuCell(int units, const float* gates, float* state, float* out);

// A graph layer. Inputs in[s * in_stride], of all slots, through the same weights to out[s * out_stride]; memory: room
// for GraphMemorySize(layer) floats, aligned to cache lines.
void CpuGraph(const Layer& layer, const float* weights, int slots, const float* in, int64_t in_stride, float* out,
              int64_t out_stride, float* memory);
int64_t GraphMemorySize(const Layer& layer);

constexpr int kMaxDenseSlots = 32;

// Several inputs through the same weights, which are read once. in[s * in_stride + i], out[s * out_stride + unit];
// out needs kLanes floats of slack per slot. Weights behind inputs that are zero in every slot are not read.
// epilogues: one a slot. list: room for DenseListSize(inputs) entries.
void CpuDense(int64_t inputs, int units, const float* weights, const Epilogue* epilogues, int slots, const float* in,
              int64_t in_stride, float* out, int64_t out_stride, int32_t* list);
int64_t DenseListSize(int64_t inputs);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_KERNELS_H_
