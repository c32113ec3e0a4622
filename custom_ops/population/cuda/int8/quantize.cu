// Quantization of thetas. Reads theta twice and writes one byte per weight, so it is memory-bound.
#include "gpu/runtime.h"
#include "population/cuda/int8/kernels.h"

namespace neuroevo::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kLoads = 16;  // loads in flight per thread

// Returns the index of the layer that a piece or tile belongs to. `first`: member with a layer's first piece or tile.
__device__ inline int LayerOf(const QuantizedNetwork& network, int64_t task, int64_t QuantizedLayer::* first) {
  int layer = 0;
  while (layer + 1 < network.layers && network.layer[layer + 1].*first <= task) ++layer;
  return layer;
}

__global__ void FindLargest(QuantizedNetwork network, const QuantizedRow* rows, int64_t first_row, uint32_t* largest) {
  const int64_t row = first_row + blockIdx.x / static_cast<unsigned>(network.pieces);
  const int64_t piece = blockIdx.x % static_cast<unsigned>(network.pieces);
  const int index = LayerOf(network, piece, &QuantizedLayer::first_piece);
  const QuantizedLayer& layer = network.layer[index];
  const int64_t begin = (piece - layer.first_piece) * kPieceWeights, weights = layer.inputs * layer.outputs;
  const float* theta = rows[row].theta + layer.offset;
  uint32_t found = 0;
  for (int64_t first = begin; first < begin + kPieceWeights; first += kThreads * kLoads) {
    float loaded[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int64_t weight = first + i * kThreads + threadIdx.x;
      loaded[i] = weight < weights ? __ldg(theta + weight) : 0;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) found = max(found, int8::AbsoluteBits(loaded[i]));
  }
#pragma unroll
  for (int other = 16; other > 0; other /= 2) found = max(found, __shfl_xor_sync(0xffffffffu, found, other));
  if (threadIdx.x % 32 == 0) atomicMax(largest + row * network.layers + index, found);
}

// Returns int8::QuantizedWeight as a byte; scale is 2^exponent. Multiplying by it is exact except for results far below
// 1/2, and adding 1.5 * 2^23 rounds to the nearest integer, with halves rounded to even.
__device__ inline uint32_t WeightByte(float weight, float scale) {
  const float scaled = Mul(weight, scale), limit = int8::kMaxWeight;
  const float cut = scaled == scaled ? fminf(limit, fmaxf(-limit, scaled)) : 0;
  return ToBits(Add(cut, 12582912.0f)) & 255;
}

// Each block transposes a tile of theta [inputs, units] into kTileBytes bytes of kTileUnits units.
__global__ void Pack(QuantizedNetwork network, const QuantizedRow* rows, int64_t first_row, const uint32_t* largest) {
  constexpr int kTileWords = kTileBytes / 4;
  __shared__ uint32_t tile[kTileUnits][kTileWords + 1];  // + 1: threads of neighboring units use different banks
  const int64_t row_index = first_row + blockIdx.x / static_cast<unsigned>(network.tiles);
  const int64_t task = blockIdx.x % static_cast<unsigned>(network.tiles);
  const int index = LayerOf(network, task, &QuantizedLayer::first_tile);
  const QuantizedLayer& layer = network.layer[index];
  const QuantizedRow row = rows[row_index];
  const int exponent = int8::WeightExponent(largest[row_index * network.layers + index]);

  const int64_t unit_tiles = (layer.units + kTileUnits - 1) / kTileUnits;
  const int64_t first_unit = (task - layer.first_tile) % unit_tiles * kTileUnits;
  const int64_t first_byte = (task - layer.first_tile) / unit_tiles * kTileBytes;
  const int thread = static_cast<int>(threadIdx.x);
  if (first_byte == 0) {  // exponents and biases of the packed row
    if (first_unit == 0 && thread == 0) reinterpret_cast<int32_t*>(row.packed)[index] = exponent;
    const int64_t unit = first_unit + thread;
    if (layer.bias_offset >= 0 && thread < kTileUnits && unit < layer.outputs) {
      reinterpret_cast<float*>(row.packed + layer.bias_place)[unit] = row.theta[layer.bias_offset + unit];
    }
  }

  const float scale = FromBits(static_cast<uint32_t>(127 + exponent) << 23);
  const int own = thread % kTileUnits;
  const int64_t unit = first_unit + own;
  const float* weights = row.theta + layer.offset + unit;
#pragma unroll
  for (int word = thread / kTileUnits; word < kTileWords; word += kThreads / kTileUnits) {
    const int64_t byte = first_byte + 4 * word;
    // The first `end` of the four bytes are weights, starting with input `input`; the others are padding.
    const int pixel = static_cast<int>(byte) / layer.pixel_bytes;
    const int channel = static_cast<int>(byte) - pixel * layer.pixel_bytes;
    const int64_t input = int64_t{pixel} * layer.channels + channel;
    const int64_t end = unit < layer.outputs && input < layer.inputs ? layer.channels - channel : 0;
    uint32_t bytes = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < end) bytes |= WeightByte(__ldg(weights + (input + i) * layer.outputs), scale) << (8 * i);
    }
    tile[own][word] = bytes;
  }
  __syncthreads();
  const int out = thread / (kTileBytes / kSegment), segment = thread % (kTileBytes / kSegment);
  if (first_unit + out >= layer.units) return;
  const uint32_t* words = tile[out] + segment * 4;
  *reinterpret_cast<uint4*>(row.packed + layer.weights_place + (first_unit + out) * layer.unit_bytes + first_byte +
                            segment * kSegment) = make_uint4(words[0], words[1], words[2], words[3]);
}
static_assert(kTileUnits * (kTileBytes / kSegment) == kThreads, "a thread writes one segment");

}  // namespace

void FindLargestWeights(const QuantizedNetwork& network, const QuantizedRow* rows, int64_t count, uint32_t* largest,
                        device::Stream stream) {
  ForGrids(count, network.pieces, [&](int64_t first, unsigned blocks) {
    Launch(FindLargest, dim3(blocks), dim3(kThreads), 0, stream, network, rows, first, largest);
  });
}

void PackWeights(const QuantizedNetwork& network, const QuantizedRow* rows, int64_t count, const uint32_t* largest,
                 device::Stream stream) {
  ForGrids(count, network.tiles, [&](int64_t first, unsigned blocks) {
    Launch(Pack, dim3(blocks), dim3(kThreads), 0, stream, network, rows, first, largest);
  });
}

}  // namespace neuroevo::cuda
