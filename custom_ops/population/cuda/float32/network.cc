#include "population/cuda/float32/network.h"

#include <algorithm>
#include <utility>

#include "core/portable_math.h"
#include "population/cuda/float32/kernels.h"

namespace neuroevo::cuda {

namespace {

constexpr int kSharedFrom = 16;  // smallest number of positions of a row for which a large tile pays

// Returns a multiple of four, so that every tensor can be read and written by vectors.
int64_t Pitch(const Step& step) { return CeilDivide(ValuesOf(step.layer.out), 4) * 4; }

// First positions of the tiles of dense layers, by tile size.
struct DenseTiles {
  std::vector<int32_t> first[kDenseTiles];

  explicit DenseTiles(const std::vector<int32_t>& rows) {
    for (size_t i = 0; i < rows.size();) {
      const size_t end =
          std::find_if(rows.begin() + i, rows.end(), [&](int32_t row) { return row != rows[i]; }) - rows.begin();
      // Large tiles first, since the kernel assumes that a tile extends to its size or to the last position of its row.
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

CudaNetwork::CudaNetwork(const Network& network, const std::vector<Layer>& layers)
    : network_(network), steps_(StepsOf(network.input_dtype(), layers)), multiprocessors_(device::Multiprocessors()) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (i + 1 < steps_.size()) pitch_[i % 2] = std::max(pitch_[i % 2], Pitch(steps_[i]));
    if (steps_[i].vbn < 0) continue;
    prepared_steps_ = i + 1;
    prepare_channels_ = std::max<int64_t>(prepare_channels_, steps_[i].layer.out[2]);
  }
  for (size_t i = 0; i < prepared_steps_; ++i) {
    prepare_pitch_[i % 2] = std::max(prepare_pitch_[i % 2], Pitch(steps_[i]));
  }
}

// The positions of a call, on the device.
struct CudaNetwork::Positions {
  Positions(const float* row_thetas, int64_t row_stride, const CallSlots& call, const States& of_states,
            const MemberMemory& of_members, int32_t* list, device::Stream on)
      : thetas(row_thetas),
        stride(row_stride),
        count(call.count()),
        slots(list),
        states(of_states),
        members(of_members),
        tiles(call.rows),
        stream(on) {
    // One list, uploaded in few launches: slots, rows, the tiles of all sizes (at most as many as positions), states,
    // and members with their factors.
    std::vector<int32_t> all = call.slots;
    all.insert(all.end(), call.rows.begin(), call.rows.end());
    for (const auto& first : tiles.first) all.insert(all.end(), first.begin(), first.end());
    state_indices = list + all.size();
    all.insert(all.end(), call.states.begin(), call.states.end());
    member_indices = list + all.size();
    all.insert(all.end(), call.members.begin(), call.members.end());
    factors = reinterpret_cast<const float*>(list + all.size());
    for (float factor : call.factors) all.push_back(static_cast<int32_t>(ToBits(factor)));
    Upload(list, all.data(), 4 * static_cast<int64_t>(all.size()), stream);
  }

  static int64_t ListSize(int64_t count) { return 6 * count; }
  const int32_t* rows() const { return slots + count; }
  const int32_t* first_of_tiles() const { return slots + 2 * count; }

  const float* thetas;
  int64_t stride, count;
  const int32_t* slots;
  const int32_t* state_indices;
  const int32_t* member_indices;
  const float* factors;
  States states;
  MemberMemory members;
  DenseTiles tiles;
  device::Stream stream;
};

void CudaNetwork::Run(const Step& step, const Positions& positions, const Tensors& in, const Tensors& out) const {
  const auto by_4 = [](const void* data, int64_t value_bytes, std::initializer_list<int64_t> sizes) {
    return reinterpret_cast<uintptr_t>(data) % (4 * value_bytes) == 0 &&
           std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size % 4 == 0; });
  };
  const int64_t count = positions.count;
  Sums sums = {};
  sums.thetas = positions.thetas;
  sums.stride = positions.stride;
  sums.rows = positions.rows();
  sums.weights = step.layer.offset;
  sums.vbn = step.vbn;
  sums.bias = step.bias;
  sums.units = step.layer.out[2];
  sums.activation = step.activation;
  sums.in = in;
  sums.out = out;
  sums.weights_by_4 = by_4(sums.thetas, 4, {sums.stride, sums.weights, sums.units});
  sums.out_by_4 = by_4(out.data, 4, {out.pitch, sums.units});
  const int64_t adjacent = step.kind == Step::Kind::kConv ? step.layer.in[2] : ValuesOf(step.layer.in);
  sums.in_by_4 = by_4(in.data, in.bytes ? 1 : 4, {in.pitch, adjacent});
  // A member has its own values for everything but the matrices.
  Sums own = sums;
  if (positions.members.first != nullptr) {
    own.thetas = positions.members.first;
    own.stride = positions.members.stride;
    own.rows = positions.member_indices;
    own.weights = step.layer.factors;
    sums.vbn = sums.bias = -1;
    sums.activation = Activation::kNone;
  }
  const auto add_factors = [&] {
    if (positions.members.first == nullptr) return;
    own.terms = sums.terms;
    LaunchFactors(own, step.layer, positions.factors, count, positions.stream);
  };
  switch (step.kind) {
    case Step::Kind::kConv:
      sums.terms = step.layer.kernel_h * step.layer.kernel_w * step.layer.in[2];
      LaunchConv(sums, step.layer, count, multiprocessors_, positions.stream);
      add_factors();
      break;
    case Step::Kind::kDense: {
      sums.terms = static_cast<int>(ValuesOf(step.layer.in));
      const int32_t* first = positions.first_of_tiles();
      for (int size = 0; size < kDenseTiles; ++size) {
        const int64_t n = static_cast<int64_t>(positions.tiles.first[size].size());
        if (n > 0) LaunchDense(sums, first, n, size, count, multiprocessors_, positions.stream);
        first += n;
      }
      add_factors();
      break;
    }
    case Step::Kind::kNeither:
      own.slope = step.layer.slope;
      LaunchElementwise(own, ValuesOf(step.layer.out), count, positions.stream);
      break;
    case Step::Kind::kPool:
      LaunchPool(step.layer, in, out, count, positions.stream);
      break;
    case Step::Kind::kLayerNorm:
      LaunchLayerNorm(step.layer, in, out, count, positions.stream);
      break;
    case Step::Kind::kRecall:
      LaunchRecall(step.layer, positions.states, positions.state_indices, in, out, count, positions.stream);
      break;
    case Step::Kind::kCell:
      LaunchCell(step.layer, positions.states, positions.state_indices, in, out, count, positions.stream);
      break;
  }
}

int64_t CudaNetwork::WorkspaceBytes(int64_t count) const {
  return PartBytes<int32_t>(Positions::ListSize(count)) + PartBytes<float>(pitch_[0] * count) +
         PartBytes<float>(pitch_[1] * count);
}

void CudaNetwork::Forward(const float* thetas, int64_t stride, const CallSlots& call, const void* observations,
                          const States& states, float* outputs, char* workspace, device::Stream stream,
                          const MemberMemory& members) const {
  const int64_t count = call.count();
  if (count == 0) return;
  Workspace parts(workspace);
  const Positions positions(thetas, stride, call, states, members, parts.Part<int32_t>(Positions::ListSize(count)),
                            stream);
  float* const between[2] = {parts.Part<float>(pitch_[0] * count), parts.Part<float>(pitch_[1] * count)};
  Tensors in = {const_cast<void*>(observations), network_.input_size(), positions.slots,
                network_.input_dtype() == DType::kUint8};
  for (size_t i = 0; i < steps_.size(); ++i) {
    Tensors out = {between[i % 2], pitch_[i % 2], nullptr};
    if (i + 1 == steps_.size()) out = {outputs, network_.output_size(), positions.slots};
    Run(steps_[i], positions, in, out);
    in = out;
  }
}

int64_t CudaNetwork::PrepareBytes(int64_t rows, int64_t observations) const {
  const int64_t count = rows * observations;
  return PartBytes<int32_t>(Positions::ListSize(count)) + PartBytes<float>(prepare_pitch_[0] * count) +
         PartBytes<float>(prepare_pitch_[1] * count) + PartBytes<double>(prepare_channels_ * count);
}

void CudaNetwork::Prepare(float* thetas, int64_t stride, const CallSlots& prepared, const void* reference,
                          int64_t observations, char* workspace, device::Stream stream,
                          const MemberMemory& members) const {
  CallSlots call;  // every row evaluates the whole reference batch
  for (size_t i = 0; i < prepared.rows.size(); ++i) {
    for (int64_t o = 0; o < observations; ++o) {
      call.rows.push_back(prepared.rows[i]);
      call.slots.push_back(static_cast<int32_t>(o));
      if (members.first == nullptr) continue;
      call.members.push_back(prepared.members[i]);
      call.factors.push_back(prepared.factors[i]);
    }
  }
  const int64_t count = call.count();
  Workspace parts(workspace);
  const Positions positions(thetas, stride, call, States(), members, parts.Part<int32_t>(Positions::ListSize(count)),
                            stream);
  float* between[2];
  for (int i : {0, 1}) between[i] = parts.Part<float>(prepare_pitch_[i] * count);
  double* sums = parts.Part<double>(prepare_channels_ * count);
  Tensors in = {const_cast<void*>(reference), network_.input_size(), positions.slots,
                network_.input_dtype() == DType::kUint8};
  for (size_t i = 0; i < prepared_steps_; ++i) {
    const Step& step = steps_[i];
    const Tensors out = {between[i % 2], prepare_pitch_[i % 2], nullptr};
    if (step.vbn < 0) {
      Run(step, positions, in, out);
    } else {
      Step before = step, after = step;  // computes the inputs of the statistics; applies the rest in place
      before.vbn = before.bias = -1;
      before.activation = Activation::kNone;
      after.kind = Step::Kind::kNeither;
      Run(before, positions, in, out);
      const bool own = members.first != nullptr;
      const VbnInputs inputs = {own ? members.first : thetas,
                                own ? members.stride : stride,
                                own ? positions.member_indices : positions.rows(),
                                step.vbn,
                                step.layer.out[2],
                                ValuesOf(step.layer.out),
                                out};
      LaunchStatistics(inputs, static_cast<int64_t>(prepared.rows.size()), observations, sums, stream);
      if (i + 1 < prepared_steps_) Run(after, positions, out, out);
    }
    in = out;
  }
}

}  // namespace neuroevo::cuda
