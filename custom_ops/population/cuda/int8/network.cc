#include "population/cuda/int8/network.h"

#include <algorithm>

#include "population/cuda/int8/kernels.h"

namespace neuroevo::cuda {

namespace {

// Smallest number of slots of a row for which sharing one read of its weights pays; fewer slots find them in the L2
// cache.
constexpr int64_t kFewSlots = 3;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// If the first layer is dense, observations are treated as vectors, whose channels need less padding.
std::array<int, 3> InputShape(const Int8Step& step, bool first) {
  const auto [height, width, channels] = step.layer.in;
  if (first && step.dense()) return {1, 1, height * width * channels};
  return {height, width, channels};
}

Int8Layer MakeLayer(const Int8Step& step, int index) {
  const auto [height, width, channels] = InputShape(step, index == 0);
  Int8Layer layer;
  layer.index = index;
  layer.in_height = height;
  layer.in_width = width;
  layer.in_words = (channels + 3) / 4;
  layer.kernel_h = step.dense() ? height : step.layer.kernel_h;
  layer.kernel_w = step.dense() ? width : step.layer.kernel_w;
  layer.stride = step.dense() ? 1 : step.layer.stride;
  layer.pad_top = step.layer.pad_top;
  layer.pad_left = step.layer.pad_left;
  layer.out_width = step.layer.out[1];
  layer.pixels = step.layer.out[0] * step.layer.out[1];
  layer.outputs = step.layer.out[2];
  const int64_t bytes = int64_t{4} * layer.kernel_h * layer.kernel_w * layer.in_words;
  layer.segments = static_cast<int>(RoundUp(bytes, kTileBytes) / kSegment);
  layer.kernel_width = Divider(layer.kernel_w);
  layer.pixel_words = Divider(layer.in_words);
  layer.pixel_segments = Divider(std::max(1, layer.in_words / 4));
  layer.weights_place = step.weights_place;
  layer.bias_place = step.has_bias ? step.bias_place : -1;
  layer.relu_at_the_end = false;
  return layer;
}

// Index lists for the kernels in a single int32 array, which is uploaded in one piece.
struct Lists {
  std::vector<int32_t> words;  // slots, rows, positions that share no row, SharedSlots
  int64_t own = 0, shared = 0;

  explicit Lists(const CallSlots& call) : words(call.slots) {
    words.insert(words.end(), call.rows.begin(), call.rows.end());
    std::vector<int32_t> shared_slots;
    const int64_t count = call.count();
    for (int64_t first = 0, end = 0; first < count; first = end) {
      while (end < count && call.rows[end] == call.rows[first]) ++end;
      if (end - first <= kFewSlots) {
        for (int64_t i = first; i < end; ++i) words.push_back(static_cast<int32_t>(i));
        own += end - first;
        continue;
      }
      for (int64_t i = first; i < end; i += kSharedSlots) {
        shared_slots.push_back(static_cast<int32_t>(i));
        shared_slots.push_back(static_cast<int32_t>(std::min<int64_t>(end - i, kSharedSlots)));
        ++shared;
      }
    }
    if (shared == 0) words.resize(2 * count);  // the list would contain all positions in order
    words.insert(words.end(), shared_slots.begin(), shared_slots.end());
  }
};

}  // namespace

CudaInt8Network::CudaInt8Network(const Network& network, int64_t index) : network_(network, index) {
  std::vector<int64_t> weights;
  for (const Int8Step& step : network_.steps) {
    const Int8Layer layer = MakeLayer(step, static_cast<int>(weights.size()));
    weights.push_back(RoundUp(layer.outputs, step.dense() ? kDenseUnits : kConvFilters) * layer.segments * kSegment);
  }
  network_.Place(weights);
  for (const Int8Step& step : network_.steps) layers_.push_back(MakeLayer(step, static_cast<int>(layers_.size())));
  layers_.back().relu_at_the_end = network_.relu_at_the_end;
  input_words_ = layers_[0].input_words();
  for (size_t i = 0; i + 1 < layers_.size(); ++i) {
    largest_words_ = std::max(largest_words_, layers_[i].out_words());
  }
}

int64_t CudaInt8Network::row_bytes() const { return RoundUp(network_.row_bytes, 256); }

int64_t CudaInt8Network::QuantizeBytes(int64_t rows) const {
  return PartBytes<QuantizedRow>(rows) + PartBytes<uint32_t>(rows * static_cast<int64_t>(layers_.size()));
}

void CudaInt8Network::Quantize(const std::vector<const float*>& thetas, const std::vector<char*>& packed,
                               char* workspace, device::Stream stream) const {
  QuantizedNetwork network = {};
  network.layers = static_cast<int>(layers_.size());
  for (int i = 0; i < network.layers; ++i) {
    const Int8Step& step = network_.steps[i];
    QuantizedLayer& layer = network.layer[i];
    layer.offset = step.layer.offset;
    layer.bias_offset = step.has_bias ? step.bias.offset : -1;
    layer.weights_place = step.weights_place;
    layer.bias_place = step.bias_place;
    layer.inputs = step.inputs;
    layer.outputs = step.outputs;
    layer.unit_bytes = int64_t{layers_[i].segments} * kSegment;
    layer.units = RoundUp(step.outputs, step.dense() ? kDenseUnits : kConvFilters);
    layer.channels = InputShape(step, i == 0)[2];
    layer.pixel_bytes = 4 * layers_[i].in_words;
    layer.first_piece = network.pieces;
    layer.first_tile = network.tiles;
    network.pieces += RoundUp(layer.inputs * layer.outputs, kPieceWeights) / kPieceWeights;
    network.tiles += layer.unit_bytes / kTileBytes * (RoundUp(layer.units, kTileUnits) / kTileUnits);
  }
  std::vector<QuantizedRow> rows;
  for (size_t i = 0; i < thetas.size(); ++i) rows.push_back({thetas[i], packed[i]});
  const int64_t count = static_cast<int64_t>(rows.size());
  Workspace parts(workspace);
  QuantizedRow* device_rows = parts.Part<QuantizedRow>(count);
  uint32_t* largest = parts.Part<uint32_t>(count * network.layers);
  Upload(device_rows, rows.data(), count * static_cast<int64_t>(sizeof(QuantizedRow)), stream);
  device::FillBytes(largest, 0, count * network.layers * static_cast<int64_t>(sizeof(uint32_t)), stream);
  FindLargestWeights(network, device_rows, count, largest, stream);
  PackWeights(network, device_rows, count, largest, stream);
}

int64_t CudaInt8Network::WorkspaceBytes(int64_t count) const {
  const int64_t layers = static_cast<int64_t>(layers_.size());
  return PartBytes<int32_t>(4 * count) + 2 * PartBytes<int32_t>(count * layers) +
         PartBytes<uint32_t>(count * std::max(input_words_, largest_words_)) +
         PartBytes<int32_t>(4 * count * largest_words_);
}

void CudaInt8Network::Forward(const char* packed, int64_t stride, const CallSlots& call, const uint8_t* observations,
                              float* outputs, char* workspace, device::Stream stream) const {
  const int64_t count = call.count(), layers = static_cast<int64_t>(layers_.size());
  if (count == 0) return;
  const Lists lists(call);
  Workspace parts(workspace);
  int32_t* words = parts.Part<int32_t>(4 * count);  // for the lists, in which each position is either single or shared
  int32_t* largest = parts.Part<int32_t>(count * layers);
  int32_t* exponents = parts.Part<int32_t>(count * layers);
  uint32_t* bytes = parts.Part<uint32_t>(count * std::max(input_words_, largest_words_));
  int32_t* sums = parts.Part<int32_t>(4 * count * largest_words_);
  Upload(words, lists.words.data(), static_cast<int64_t>(lists.words.size() * sizeof(int32_t)), stream);
  device::FillBytes(largest, 0, count * layers * static_cast<int64_t>(sizeof(int32_t)), stream);
  const int32_t* positions = lists.shared == 0 ? nullptr : words + 2 * count;
  const auto* shared = reinterpret_cast<const SharedSlots*>(words + 2 * count + (lists.shared == 0 ? 0 : lists.own));

  Int8Call now = {};
  now.packed = packed;
  now.stride = stride;
  now.slots = words;
  now.rows = words + count;
  now.sums = sums;
  const Int8Layer& first = layers_[0];
  const int channels = InputShape(network_.steps[0], true)[2];
  const int64_t observation_words = int64_t{first.in_height} * first.in_width * first.in_words;
  // Observations are read in place if they have the layout and alignment of activations.
  now.by_slot = channels % 4 == 0 && observation_words % 4 == 0 && reinterpret_cast<uintptr_t>(observations) % 16 == 0;
  if (now.by_slot) {
    now.input = reinterpret_cast<const uint32_t*>(observations);
  } else {
    now.input = bytes;
    PadObservations(first, now.slots, observations, channels, bytes, count, stream);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Int8Layer& layer = layers_[i];
    const bool last = i + 1 == layers_.size();
    now.largest = largest + count * static_cast<int64_t>(i);
    if (last) now.outputs = outputs;
    if (!network_.steps[i].dense()) {
      SumConv(layer, now, count, stream);
    } else {
      SumDense(layer, now, positions, lists.own, stream);
      SumSharedDense(layer, now, shared, lists.shared, stream);
    }
    if (last) break;
    int32_t* next = exponents + count * static_cast<int64_t>(i);
    MakeActivations(layer, now, bytes, next, count, stream);
    now.exponents = next;
    now.input = bytes;
    now.by_slot = false;
  }
}

}  // namespace neuroevo::cuda
