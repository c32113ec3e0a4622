#include "population/cuda/population.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "population/cuda/noise.h"
#include "population/cuda/trace.h"
#include "population/perturb_chains.h"

#ifndef NEUROEVO_CUDA_BACKEND
#define NEUROEVO_CUDA_BACKEND "cuda"
#endif

namespace neuroevo::cuda {

namespace {

constexpr int64_t kRowAlignment = 256;   // bytes
constexpr int64_t kScratchRows = 8;      // where int8 rows that keep no theta are made: one for each lane that refills
constexpr int64_t kCopyBytes = 1 << 20;  // of observations, that one task copies
// Of the memory in which rows are prepared together: 22 of VirtualBN with 128 observations, 2816 positions at once.
constexpr int64_t kPrepareBytes = int64_t{128} << 20;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Rows of float32 that an int8 population needs: those that keep their theta, and scratch.
int64_t FloatRowsNeeded(int64_t float_rows, int64_t rows) {
  const int64_t kept = Int8Population::FloatRows(float_rows, rows);
  return kept + std::min(kScratchRows, rows - kept);
}

// The call's slots that play each of the networks, by row.
std::vector<CallSlots> SlotsOfNetworks(const std::vector<int64_t>& rows, const std::vector<int64_t>& states,
                                       const std::vector<int32_t>& row_network, size_t networks) {
  std::vector<int32_t> order(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return rows[a] < rows[b]; });
  std::vector<CallSlots> calls(networks);
  for (int32_t slot : order) {
    CallSlots& call = calls[row_network[rows[slot]]];
    call.slots.push_back(slot);
    call.rows.push_back(static_cast<int32_t>(rows[slot]));
    if (!states.empty()) call.states.push_back(static_cast<int32_t>(states[slot]));
  }
  return calls;
}

// Forward for observations and outputs of the host: through pinned memory, which the GPU reads by itself.
void ForwardFromHost(Calls* calls, ThreadPool* pool, DeviceForward* forward, const Network& network,
                     const std::vector<int64_t>& rows, const void* observations, float* out,
                     const std::vector<int64_t>& states) {
  const int64_t k = static_cast<int64_t>(rows.size());
  if (k == 0) return;
  const int64_t in_bytes = k * network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype()));
  const int64_t out_floats = k * network.output_size();
  const int64_t in_part = PartBytes<char>(in_bytes), out_part = PartBytes<float>(out_floats);
  calls->Run([&](Calls::Call& call) {
    call.pinned.Grow(in_part + out_part);
    call.on_device.Grow(in_part + out_part + forward->WorkspaceBytes(k));
    char* pinned = call.pinned.data();
    pool->ParallelFor((in_bytes + kCopyBytes - 1) / kCopyBytes, [&](int64_t task) {
      const int64_t begin = task * kCopyBytes;
      memcpy(pinned + begin, static_cast<const char*>(observations) + begin, std::min(kCopyBytes, in_bytes - begin));
    });
    Workspace parts(call.on_device.data());
    char* device_in = parts.Part<char>(in_bytes);
    float* device_out = parts.Part<float>(out_floats);
    device::CopyIn(device_in, pinned, in_bytes, call.stream);
    DeviceSpan span(call.stream);
    forward->ForwardOnDevice(rows, device_in, device_out, states, parts.Part<char>(0), call.stream);
    span.End();
    device::CopyOut(pinned + in_part, device_out, out_floats * static_cast<int64_t>(sizeof(float)), call.stream);
    device::Synchronize(call.stream);
    span.Note("forward", k, observations);
    memcpy(out, pinned + in_part, out_floats * sizeof(float));
  });
}

std::unique_ptr<Population> MakePopulation(std::vector<Network> networks, int64_t rows,
                                           std::shared_ptr<ThreadPool> pool, DType dtype, int64_t float_rows,
                                           std::shared_ptr<MemorySource> memory, int rank) {
  if (rank != 0) ThrowInvalid("rank is ", rank, ", expected 0: the GPU backend has no members of low rank");
  device::CheckAvailable();
  const device::Using gpu(memory == nullptr ? 0 : device::Current());
  if (dtype == DType::kFloat32) {
    return std::make_unique<CudaPopulation>(std::move(networks), rows, std::move(pool), std::move(memory));
  }
  return std::make_unique<CudaInt8Population>(std::move(networks), rows, std::move(pool), float_rows,
                                              std::move(memory));
}

const Population::Register registered(NEUROEVO_CUDA_BACKEND, MakePopulation);

}  // namespace

CudaPopulation::CudaPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool,
                               std::shared_ptr<MemorySource> memory)
    : FloatPopulation(std::move(networks), rows, std::move(pool)) {
  int64_t longest = 0;
  for (const Network& network : networks_) {
    longest = std::max(longest, network.row_size());
    cuda_networks_.emplace_back(network);
  }
  const int64_t bytes = RoundUp(longest * static_cast<int64_t>(sizeof(float)), kRowAlignment);
  stride_ = bytes / static_cast<int64_t>(sizeof(float));
  memory_ = std::make_unique<RowsMemory>(rows_, bytes, "float32", memory);
  if (!recurrent()) return;
  const int64_t state_bytes = state_size_ * static_cast<int64_t>(sizeof(float));
  states_ = std::make_unique<RowsMemory>(rows_, state_bytes, "states", std::move(memory));
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
      const int64_t bytes = NetworkOf(rows[i]).dimension() * static_cast<int64_t>(sizeof(float));
      device::CopyOut(out + static_cast<int64_t>(i) * stride, Row(rows[i]), bytes, call.stream);
    }
  });
}

void CudaPopulation::DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src,
                               const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds,
                               const std::vector<float>& scale) {
  calls_.Run([&](Calls::Call& call) {
    for (const std::vector<int32_t>& chain : PerturbChains(dst, src)) {
      // A chain is of one network unless a row changes hands in it: each stretch of one network is a list of its own.
      std::vector<Mutation> mutations;
      for (size_t c = 0; c < chain.size(); ++c) {
        const int32_t i = chain[c];
        mutations.push_back({Row(dst[i]), Row(src[i]), seeds[i], scale[i]});
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
    for (size_t n = 0; n < cuda_networks_.size(); ++n) {
      const CudaNetwork& network = cuda_networks_[n];
      std::vector<int32_t> all;
      for (int64_t row : rows) {
        if (row_network_[row] == static_cast<int32_t>(n)) all.push_back(static_cast<int32_t>(row));
      }
      if (all.empty()) continue;
      const int64_t at_once = std::max<int64_t>(1, kPrepareBytes / network.PrepareBytes(1, reference_count_));
      for (size_t first = 0; first < all.size(); first += at_once) {
        const std::vector<int32_t> some(all.begin() + first, all.begin() + std::min(all.size(), first + at_once));
        // The workspace of those before may still be read: memory only grows once that is over.
        const int64_t bytes = network.PrepareBytes(static_cast<int64_t>(some.size()), reference_count_);
        if (bytes > call.on_device.bytes()) device::Synchronize(call.stream);
        call.on_device.Grow(bytes);
        network.Prepare(Row(0), stride_, some, reference_on_device_.data(), reference_count_, call.on_device.data(),
                        call.stream);
      }
    }
  });
}

void CudaPopulation::DoReadStatistics(int64_t row, float* out, int64_t n) {
  calls_.Run([&](Calls::Call& call) {
    const int64_t bytes = n * static_cast<int64_t>(sizeof(float));
    device::CopyOut(out, Row(row) + NetworkOf(row).dimension(), bytes, call.stream);
  });
}

void CudaPopulation::ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                                     const std::vector<int64_t>& states, char* workspace, device::Stream stream) {
  CheckForward(rows, observations, outputs, states);
  static const std::vector<int64_t> none;
  const std::vector<CallSlots> calls =
      SlotsOfNetworks(rows, recurrent() ? states : none, row_network_, networks_.size());
  const States slots_states = {recurrent() ? reinterpret_cast<float*>(states_->data()) : nullptr, state_size_};
  for (size_t n = 0; n < calls.size(); ++n) {
    if (calls[n].count() == 0) continue;
    cuda_networks_[n].Forward(Row(0), stride_, calls[n], observations, slots_states, outputs, workspace, stream);
    workspace += cuda_networks_[n].WorkspaceBytes(calls[n].count());
  }
}

void CudaPopulation::DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                               const std::vector<int64_t>& states) {
  ForwardFromHost(&calls_, pool_.get(), this, networks_[0], rows, observations, out, states);
}

void CudaPopulation::DoClearStates(const std::vector<int64_t>& states) {
  const int64_t bytes = state_size_ * static_cast<int64_t>(sizeof(float));
  calls_.Run([&](Calls::Call& call) {
    for (int64_t state : states) Zero(states_->data() + state * bytes, bytes, call.stream);
  });
}

CudaInt8Population::CudaInt8Population(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool,
                                       int64_t float_rows, std::shared_ptr<MemorySource> memory)
    : Int8Population(
          std::make_unique<CudaPopulation>(networks, FloatRowsNeeded(float_rows, rows), std::move(pool), memory), rows,
          float_rows) {
  for (const Network& network : networks_) {
    cuda_networks_.emplace_back(network, static_cast<int64_t>(cuda_networks_.size()));
    stride_ = std::max(stride_, RoundUp(cuda_networks_.back().row_bytes(), kRowAlignment));
  }
  const int64_t floats = FloatRowsNeeded(float_rows, rows);
  memory_ = std::make_unique<RowsMemory>(rows_, stride_, Concat("int8 beside ", floats, " rows of float32"),
                                         std::move(memory));
}

int64_t CudaInt8Population::WorkspaceBytes(int64_t count) const {
  int64_t bytes = 0;
  for (const CudaInt8Network& network : cuda_networks_) bytes += network.WorkspaceBytes(count);
  return bytes;
}

void CudaInt8Population::QuantizeRows(const std::vector<Target>& targets) {
  calls_.Run([&](Calls::Call& call) {
    for (size_t n = 0; n < cuda_networks_.size(); ++n) {
      std::vector<const float*> thetas;
      std::vector<char*> packed;
      for (const Target& target : targets) {
        if (target.network != static_cast<int32_t>(n)) continue;
        thetas.push_back(target.theta);
        packed.push_back(Row(target.row));
      }
      if (thetas.empty()) continue;
      // The workspace of the network before may still be read: memory only grows once that is over.
      const int64_t bytes = cuda_networks_[n].QuantizeBytes(static_cast<int64_t>(thetas.size()));
      if (bytes > call.on_device.bytes()) device::Synchronize(call.stream);
      call.on_device.Grow(bytes);
      cuda_networks_[n].Quantize(thetas, packed, call.on_device.data(), call.stream);
    }
  });
}

void CudaInt8Population::ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                                         const std::vector<int64_t>& states, char* workspace, device::Stream stream) {
  CheckForward(rows, observations, outputs, states);
  const std::vector<CallSlots> calls = SlotsOfNetworks(rows, {}, row_network_, networks_.size());
  for (size_t n = 0; n < calls.size(); ++n) {
    if (calls[n].count() == 0) continue;
    cuda_networks_[n].Forward(Row(0), stride_, calls[n], static_cast<const uint8_t*>(observations), outputs, workspace,
                              stream);
    workspace += cuda_networks_[n].WorkspaceBytes(calls[n].count());
  }
}

void CudaInt8Population::DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                                   const std::vector<int64_t>& states) {
  ForwardFromHost(&calls_, pool_.get(), this, networks_[0], rows, observations, out, states);
}

}  // namespace neuroevo::cuda
