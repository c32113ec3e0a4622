// Populations of integer networks on a GPU.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "population/cuda/host_calls.h"
#include "population/cuda/population.h"

namespace neuroevo::cuda {

namespace {

constexpr int64_t kScratchRows = 8;  // for rows that keep no theta: one per lane that refills concurrently

// Returns the number of float32 rows that an int8 population needs: those that keep their theta, and scratch rows.
int64_t FloatRowsNeeded(int64_t float_rows, int64_t rows) {
  const int64_t kept = Int8Population::FloatRows(float_rows, rows);
  return kept + std::min(kScratchRows, rows - kept);
}

// Returns the call's slots for each network, sorted by row.
std::vector<CallSlots> SlotsOfNetworks(const std::vector<int64_t>& rows, const std::vector<int32_t>& row_network,
                                       size_t networks) {
  std::vector<CallSlots> calls(networks);
  for (int32_t slot : Sorted(rows)) {
    CallSlots& call = calls[row_network[rows[slot]]];
    call.slots.push_back(slot);
    call.rows.push_back(static_cast<int32_t>(rows[slot]));
  }
  return calls;
}

}  // namespace

CudaInt8Population::CudaInt8Population(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool,
                                       int64_t float_rows)
    : Int8Population(std::make_unique<CudaPopulation>(networks, FloatRowsNeeded(float_rows, rows), std::move(pool)),
                     rows, float_rows) {
  for (const Network& network : networks_) {
    cuda_networks_.emplace_back(network, static_cast<int64_t>(cuda_networks_.size()));
    stride_ = std::max(stride_, PartBytes<char>(cuda_networks_.back().row_bytes()));
  }
  const int64_t floats = FloatRowsNeeded(float_rows, rows);
  memory_ = std::make_unique<RowsMemory>(rows_, stride_, Concat("int8 in addition to ", floats, " rows of float32"));
}

void CudaInt8Population::ReplacePacked(int32_t index) {
  CudaInt8Network made(networks_[index], index);
  if (PartBytes<char>(made.row_bytes()) > stride_) {
    ThrowInvalid("network ", index, " needs ", made.row_bytes(), " bytes as int8, expected at most ", stride_,
                 " as in the largest network that the population was created with");
  }
  cuda_networks_[index] = std::move(made);
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
      // Kernels may still read the workspace of the previous network, so synchronize before it is reallocated.
      const int64_t bytes = cuda_networks_[n].QuantizeBytes(static_cast<int64_t>(thetas.size()));
      if (bytes > call.on_device.bytes()) device::Synchronize(call.stream);
      call.on_device.Grow(bytes);
      cuda_networks_[n].Quantize(thetas, packed, call.on_device.data(), call.stream);
    }
  });
}

void CudaInt8Population::ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                                         const std::vector<int64_t>& /*states*/, char* workspace,
                                         device::Stream stream) {
  const std::vector<CallSlots> calls = SlotsOfNetworks(rows, row_network_, networks_.size());
  for (size_t n = 0; n < calls.size(); ++n) {
    if (calls[n].count() == 0) continue;
    cuda_networks_[n].Forward(Row(0), stride_, calls[n], static_cast<const uint8_t*>(observations), outputs, workspace,
                              stream);
    workspace += cuda_networks_[n].WorkspaceBytes(calls[n].count());
  }
}

void CudaInt8Population::DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                                   const std::vector<int64_t>& states) {
  ForwardFromHost(&calls_, this, networks_[0], rows, observations, out, states);
}

}  // namespace neuroevo::cuda
