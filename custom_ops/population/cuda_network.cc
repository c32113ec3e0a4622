#include "population/cuda_network.h"

#include <algorithm>
#include <utility>

#include "population/cuda_kernels.h"

namespace neuroevo::cuda {

namespace {

constexpr int kSharedFrom = 16;  // positions of a row that are worth a tile for many

int64_t Size(const std::array<int, 3>& shape) { return int64_t{1} * shape[0] * shape[1] * shape[2]; }

bool BiasFits(const Step& step) { return step.bias < 0 && step.activation == Activation::kNone; }

// The positions that begin tiles of dense layers, by the tiles' size.
struct DenseTiles {
  std::vector<int32_t> first[kDenseTiles];

  explicit DenseTiles(const std::vector<int32_t>& rows) {
    for (size_t i = 0; i < rows.size();) {
      const size_t end =
          std::find_if(rows.begin() + i, rows.end(), [&](int32_t row) { return row != rows[i]; }) - rows.begin();
      // Large tiles first: the kernel takes a tile to reach to its size or to the end of the row's positions.
      while (i < end) {
        const size_t left = end - i;
        const int size = left >= kSharedFrom ? 2 : left > 1 ? 1 : 0;
        first[size].push_back(static_cast<int32_t>(i));
        i += std::min<size_t>(left, kDenseTileSizes[size]);
      }
    }
  }
};

}  // namespace

std::vector<Step> StepsOf(const Network& network) {
  std::vector<Step> steps;
  for (const Layer& layer : network.layers()) {
    Step alone;
    alone.kind = Step::Kind::kNeither;
    alone.layer = layer;
    switch (layer.kind) {
      case Layer::Kind::kConv:
      case Layer::Kind::kDense:
        if (steps.empty() && layer.kind == Layer::Kind::kDense && network.input_dtype() == DType::kUint8) {
          alone.layer.out = layer.in;
          steps.push_back(alone);
          alone.layer = layer;
        }
        alone.kind = layer.kind == Layer::Kind::kConv ? Step::Kind::kConv : Step::Kind::kDense;
        steps.push_back(alone);
        break;
      case Layer::Kind::kBias:
        if (steps.empty() || !BiasFits(steps.back())) steps.push_back(alone);
        steps.back().bias = layer.offset;
        break;
      case Layer::Kind::kRelu:
      case Layer::Kind::kTanh:
        if (steps.empty() || steps.back().activation != Activation::kNone) steps.push_back(alone);
        steps.back().activation = layer.kind == Layer::Kind::kRelu ? Activation::kRelu : Activation::kTanh;
        break;
    }
  }
  return steps;
}

CudaNetwork::CudaNetwork(const Network& network)
    : network_(network), steps_(StepsOf(network)), multiprocessors_(device::Multiprocessors()) {
  for (size_t i = 0; i + 1 < steps_.size(); ++i) {
    // A multiple of four, so that every tensor can be read and written by vectors.
    pitch_[i % 2] = std::max(pitch_[i % 2], CeilDivide(Size(steps_[i].layer.out), 4) * 4);
  }
}

int64_t CudaNetwork::WorkspaceBytes(int64_t count) const {
  return PartBytes<int32_t>(3 * count) + PartBytes<float>(pitch_[0] * count) + PartBytes<float>(pitch_[1] * count);
}

void CudaNetwork::Forward(const float* thetas, int64_t stride, const CallSlots& call, const void* observations,
                          float* outputs, char* workspace, device::Stream stream) const {
  const int64_t count = call.count();
  if (count == 0) return;
  Workspace parts(workspace);
  int32_t* device_list = parts.Part<int32_t>(3 * count);
  float* const between[2] = {parts.Part<float>(pitch_[0] * count), parts.Part<float>(pitch_[1] * count)};

  // One list, so that few launches bring it: slots, rows and the tiles of all sizes.
  const DenseTiles tiles(call.rows);
  std::vector<int32_t> list = call.slots;
  list.insert(list.end(), call.rows.begin(), call.rows.end());
  for (const auto& first : tiles.first) list.insert(list.end(), first.begin(), first.end());
  Upload(device_list, list.data(), 4 * static_cast<int64_t>(list.size()), stream);

  Tensors in = {const_cast<void*>(observations), network_.input_size(), device_list,
                network_.input_dtype() == DType::kUint8};
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    Tensors out = {between[i % 2], pitch_[i % 2], nullptr};
    if (i + 1 == steps_.size()) out = {outputs, network_.output_size(), device_list};
    const auto by_4 = [](const void* data, int64_t value_bytes, std::initializer_list<int64_t> sizes) {
      return reinterpret_cast<uintptr_t>(data) % (4 * value_bytes) == 0 &&
             std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size % 4 == 0; });
    };
    Sums sums = {};
    sums.thetas = thetas;
    sums.stride = stride;
    sums.rows = device_list + count;
    sums.weights = step.layer.offset;
    sums.bias = step.bias;
    sums.units = step.layer.out[2];
    sums.activation = step.activation;
    sums.in = in;
    sums.out = out;
    sums.weights_by_4 = by_4(thetas, 4, {stride, sums.weights, sums.units});
    sums.out_by_4 = by_4(out.data, 4, {out.pitch, sums.units});
    const int64_t adjacent = step.kind == Step::Kind::kConv ? step.layer.in[2] : Size(step.layer.in);
    sums.in_by_4 = by_4(in.data, in.bytes ? 1 : 4, {in.pitch, adjacent});
    switch (step.kind) {
      case Step::Kind::kConv:
        sums.terms = step.layer.kernel_h * step.layer.kernel_w * step.layer.in[2];
        LaunchConv(sums, step.layer, count, multiprocessors_, stream);
        break;
      case Step::Kind::kDense: {
        sums.terms = static_cast<int>(Size(step.layer.in));
        const int32_t* first = device_list + 2 * count;
        for (int size = 0; size < kDenseTiles; first += tiles.first[size++].size()) {
          const int64_t n = static_cast<int64_t>(tiles.first[size].size());
          if (n > 0) LaunchDense(sums, first, n, size, count, multiprocessors_, stream);
        }
        break;
      }
      case Step::Kind::kNeither:
        LaunchElementwise(sums, Size(step.layer.out), count, stream);
        break;
    }
    in = out;
  }
}

}  // namespace neuroevo::cuda
