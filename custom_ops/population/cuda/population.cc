#include "population/cuda/population.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "networks/low_rank.h"
#include "population/cuda/host_calls.h"
#include "population/cuda/noise.h"
#include "population/perturb_chains.h"

#ifndef NEUROEVO_CUDA_BACKEND
#define NEUROEVO_CUDA_BACKEND "cuda"
#endif

namespace neuroevo::cuda {

namespace {

// Memory for preparing rows together: 22 rows of VirtualBN with 128 observations, 2816 positions.
constexpr int64_t kPrepareBytes = int64_t{128} << 20;

std::unique_ptr<Population> MakePopulation(std::vector<Network> networks, int64_t rows,
                                           std::shared_ptr<ThreadPool> pool, DType dtype, int64_t float_rows,
                                           int rank) {
  device::CheckAvailable();
  const device::Using gpu(0);
  if (dtype == DType::kFloat32) {
    return std::make_unique<CudaPopulation>(std::move(networks), rows, std::move(pool), rank,
                                            rank == 0 ? -1 : float_rows);
  }
  return std::make_unique<CudaInt8Population>(std::move(networks), rows, std::move(pool), float_rows);
}

const Population::Register registered(NEUROEVO_CUDA_BACKEND, MakePopulation);

}  // namespace

CudaPopulation::CudaPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank,
                               int64_t float_rows)
    : FloatPopulation(std::move(networks), rows, std::move(pool), rank, float_rows) {
  int64_t longest = 0, member = 0;
  for (const Network& network : networks_) {
    longest = std::max(longest, network.row_size());
    cuda_networks_.emplace_back(network);
    if (members_.count() == 0) continue;
    member = std::max(member, network.member_size(rank));
    member_layers_.push_back(network.member_layers(rank));
  }
  for (size_t n = 0; n < member_layers_.size(); ++n) cuda_networks_.emplace_back(networks_[n], member_layers_[n]);
  const auto make = [&](int64_t count, int64_t floats, const char* what, int64_t* stride) {
    const int64_t bytes = PartBytes<float>(floats);
    *stride = bytes / static_cast<int64_t>(sizeof(float));
    return std::make_unique<RowsMemory>(count, bytes, what);
  };
  memory_ = make(members_.weight_rows(), longest, "float32", &stride_);
  if (members_.count() > 0) {
    members_rows_ = make(members_.count(), member, "members of low rank", &member_memory_.stride);
    member_memory_.first = reinterpret_cast<float*>(members_rows_->data());
  }
  if (!recurrent()) return;
  const int64_t state_bytes = state_size_ * static_cast<int64_t>(sizeof(float));
  states_ = std::make_unique<RowsMemory>(rows_, state_bytes, "states");
}

int64_t CudaPopulation::WorkspaceBytes(int64_t count) const {
  int64_t bytes = 0;
  for (const CudaNetwork& network : cuda_networks_) bytes += network.WorkspaceBytes(count);
  return bytes;
}

void CudaPopulation::DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) {
  calls_.Run([&](Calls::Call& call) {
    for (size_t i = 0; i < rows.size(); ++i) InitTheta(NetworkOf(rows[i]), seeds[i], Row(rows[i]), call.stream);
  });
}

void CudaPopulation::DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) {
  calls_.Run([&](Calls::Call& call) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t bytes = NetworkOf(rows[i]).dimension() * static_cast<int64_t>(sizeof(float));
      device::CopyIn(Row(rows[i]), thetas + static_cast<int64_t>(i) * stride, bytes, call.stream);
    }
  });
}

void CudaPopulation::DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) {
  calls_.Run([&](Calls::Call& call) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (members_.Is(rows[i])) {
        ReadMember(rows[i], out + static_cast<int64_t>(i) * stride, &call);
        continue;
      }
      const int64_t bytes = NetworkOf(rows[i]).dimension() * static_cast<int64_t>(sizeof(float));
      device::CopyOut(out + static_cast<int64_t>(i) * stride, Row(rows[i]), bytes, call.stream);
    }
  });
}

void CudaPopulation::ReadMember(int64_t row, float* out, Calls::Call* call) const {
  const Network& network = NetworkOf(row);
  const Members::Member& own = members_.Of(row);
  std::vector<float> center(network.dimension()), member(network.factors(rank()));
  const auto copy = [&](std::vector<float>* to, const float* from) {
    device::CopyOut(to->data(), from, static_cast<int64_t>(to->size() * sizeof(float)), call->stream);
  };
  copy(&center, Row(own.center));
  copy(&member, Row(row));
  device::Synchronize(call->stream);
  low_rank::Materialize(network, member_layers_[row_network_[row]], center.data(), member.data(), own.scale, out);
}

void CudaPopulation::DoPerturbMembers(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) {
  calls_.Run([&](Calls::Call& call) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const Members::Member& member = members_.Of(rows[i]);
      FillMember(NetworkOf(rows[i]), member_layers_[row_network_[rows[i]]], seeds[i], member.scale, Row(member.center),
                 Row(rows[i]), call.stream);
    }
  });
}

void CudaPopulation::DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src,
                               const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds,
                               const std::vector<float>& scale, const std::vector<int64_t>& spreads) {
  calls_.Run([&](Calls::Call& call) {
    for (const std::vector<int32_t>& chain : PerturbChains(dst, src)) {
      // A row may change its network within a chain, so each stretch of entries with one network is a separate list.
      std::vector<Mutation> mutations;
      for (size_t c = 0; c < chain.size(); ++c) {
        const int32_t i = chain[c];
        const float* spread = spreads[i] < 0 ? nullptr : Row(spreads[i]);
        mutations.push_back({Row(dst[i]), Row(src[i]), seeds[i], scale[i], spread});
        if (c + 1 < chain.size() && network[chain[c + 1]] == network[i]) continue;
        MutateThetas(mutations, networks_[network[i]].dimension(), call.stream);
        mutations.clear();
      }
    }
  });
}

void CudaPopulation::DoSetReference() {
  calls_.Run([&](Calls::Call& call) {
    const int64_t bytes = static_cast<int64_t>(reference_.size());
    reference_on_device_.Grow(bytes);
    device::CopyIn(reference_on_device_.data(), reference_.data(), bytes, call.stream);
  });
}

void CudaPopulation::DoPrepare(const std::vector<int64_t>& rows) {
  calls_.Run([&](Calls::Call& call) {
    std::vector<std::vector<int64_t>> all(cuda_networks_.size());
    for (int64_t row : rows) all[NetworkFor(row)].push_back(row);
    for (size_t n = 0; n < all.size(); ++n) {
      const CudaNetwork& network = cuda_networks_[n];
      if (all[n].empty()) continue;
      const int64_t at_once = std::max<int64_t>(1, kPrepareBytes / network.PrepareBytes(1, reference_count_));
      for (size_t first = 0; first < all[n].size(); first += at_once) {
        const auto begin = all[n].begin() + first, end = all[n].begin() + std::min(all[n].size(), first + at_once);
        // Kernels may still read the previous workspace, so synchronize before it is reallocated.
        const int64_t bytes = network.PrepareBytes(end - begin, reference_count_);
        if (bytes > call.on_device.bytes()) device::Synchronize(call.stream);
        call.on_device.Grow(bytes);
        network.Prepare(Row(0), stride_, CallsOf({begin, end}, {})[n], reference_on_device_.data(), reference_count_,
                        call.on_device.data(), call.stream, MembersFor(n));
      }
    }
  });
}

void CudaPopulation::DoReadStatistics(int64_t row, float* out, int64_t n) {
  calls_.Run([&](Calls::Call& call) {
    const int64_t bytes = n * static_cast<int64_t>(sizeof(float));
    const Network& network = NetworkOf(row);
    const int64_t before = members_.Is(row) ? network.factors(rank()) : network.dimension();
    device::CopyOut(out, Row(row) + before, bytes, call.stream);
  });
}

std::vector<CallSlots> CudaPopulation::CallsOf(const std::vector<int64_t>& rows,
                                               const std::vector<int64_t>& states) const {
  std::vector<int64_t> shared = rows;  // sort keys: the rows whose weights are read
  for (int64_t& row : shared) {
    if (members_.Is(row)) row = members_.Of(row).center;
  }
  std::vector<CallSlots> calls(cuda_networks_.size());
  for (int32_t slot : Sorted(shared)) {
    const int64_t row = rows[slot];
    CallSlots& call = calls[NetworkFor(row)];
    call.slots.push_back(slot);
    call.rows.push_back(static_cast<int32_t>(shared[slot]));
    if (!states.empty()) call.states.push_back(static_cast<int32_t>(states[slot]));
    if (!members_.Is(row)) continue;
    call.members.push_back(static_cast<int32_t>(row - members_.weight_rows()));
    call.factors.push_back(low_rank::Factor(members_.Of(row).scale, rank()));
  }
  return calls;
}

void CudaPopulation::ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                                     const std::vector<int64_t>& states, char* workspace, device::Stream stream) {
  static const std::vector<int64_t> none;
  const std::vector<CallSlots> calls = CallsOf(rows, recurrent() ? states : none);
  const States slots_states = {recurrent() ? reinterpret_cast<float*>(states_->data()) : nullptr, state_size_};
  for (size_t n = 0; n < calls.size(); ++n) {
    if (calls[n].count() == 0) continue;
    cuda_networks_[n].Forward(Row(0), stride_, calls[n], observations, slots_states, outputs, workspace, stream,
                              MembersFor(n));
    workspace += cuda_networks_[n].WorkspaceBytes(calls[n].count());
  }
}

void CudaPopulation::DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                               const std::vector<int64_t>& states) {
  ForwardFromHost(&calls_, this, networks_[0], rows, observations, out, states);
}

void CudaPopulation::DoClearStates(const std::vector<int64_t>& states) {
  const int64_t bytes = state_size_ * static_cast<int64_t>(sizeof(float));
  calls_.Run([&](Calls::Call& call) {
    for (int64_t state : states) Zero(states_->data() + state * bytes, bytes, call.stream);
  });
}

}  // namespace neuroevo::cuda
