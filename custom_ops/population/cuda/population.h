// Populations whose rows are stored, filled and evaluated on a GPU, bit-identical to the CPU.
#ifndef NEUROEVO_POPULATION_CUDA_POPULATION_H_
#define NEUROEVO_POPULATION_CUDA_POPULATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "population/cuda/calls.h"
#include "population/cuda/device_forward.h"
#include "population/cuda/float32/network.h"
#include "population/cuda/host_calls.h"
#include "population/cuda/int8/network.h"
#include "population/cuda/rows_memory.h"
#include "population/float_population.h"
#include "population/int8/population.h"

namespace neuroevo::cuda {

class CudaPopulation : public FloatPopulation, public DeviceForward {
 public:
  CudaPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank = 0,
                 int64_t float_rows = -1);

  const float* Theta(int64_t row) const override { return Row(row); }
  std::shared_ptr<char> HostMemory(int64_t bytes) const override { return PinnedMemory(bytes); }
  int64_t WorkspaceBytes(int64_t count) const override;
  void ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                       const std::vector<int64_t>& states, char* workspace, device::Stream stream) override;

 private:
  void DoReplace(int32_t index) override { cuda_networks_[index] = CudaNetwork(networks_[index]); }
  void DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) override;
  void DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) override;
  void DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) override;
  void DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src, const std::vector<int32_t>& network,
                 const std::vector<uint64_t>& seeds, const std::vector<float>& scale,
                 const std::vector<int64_t>& spreads) override;
  void DoPerturbMembers(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) override;
  void DoSetReference() override;
  void DoPrepare(const std::vector<int64_t>& rows) override;
  void DoReadStatistics(int64_t row, float* out, int64_t n) override;
  void DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                 const std::vector<int64_t>& states) override;
  void DoClearStates(const std::vector<int64_t>& states) override;

  // The row's theta or the member's values, followed by the statistics of its vbn layers.
  float* Row(int64_t row) const {
    if (!members_.Is(row)) return reinterpret_cast<float*>(memory_->data()) + row * stride_;
    return member_memory_.first + (row - members_.weight_rows()) * member_memory_.stride;
  }
  // Index into cuda_networks_ of a row's network, and the member memory of that network.
  size_t NetworkFor(int64_t row) const { return row_network_[row] + (members_.Is(row) ? networks_.size() : 0); }
  MemberMemory MembersFor(size_t network) const { return network < networks_.size() ? MemberMemory() : member_memory_; }
  void ReadMember(int64_t row, float* out, Calls::Call* call) const;
  // Returns the call's slots for each network, followed by the slots for members of each network.
  std::vector<CallSlots> CallsOf(const std::vector<int64_t>& rows, const std::vector<int64_t>& states) const;

  std::vector<CudaNetwork> cuda_networks_;         // followed by those of members if the population has any
  std::vector<std::vector<Layer>> member_layers_;  // per network; empty if the population has no members
  int64_t stride_ = 0;                             // floats from row to row
  std::unique_ptr<RowsMemory> memory_;             // rows that hold weights
  std::unique_ptr<RowsMemory> members_rows_;       // members; null if the population has none
  MemberMemory member_memory_;                     // pointer and stride of members_rows_
  std::unique_ptr<RowsMemory> states_;             // [R, state_size_] floats; null if no network is recurrent
  device::Memory reference_on_device_{device::Where::kDevice};
  Calls calls_;
};

class CudaInt8Population : public Int8Population, public DeviceForward {
 public:
  CudaInt8Population(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int64_t float_rows);

  std::shared_ptr<char> HostMemory(int64_t bytes) const override { return PinnedMemory(bytes); }
  int64_t WorkspaceBytes(int64_t count) const override;
  void ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                       const std::vector<int64_t>& states, char* workspace, device::Stream stream) override;

 private:
  void ReplacePacked(int32_t index) override;
  void QuantizeRows(const std::vector<Target>& targets) override;
  void DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                 const std::vector<int64_t>& states) override;

  char* Row(int64_t row) const { return memory_->data() + row * stride_; }

  std::vector<CudaInt8Network> cuda_networks_;
  int64_t stride_ = 0;  // bytes from row to row
  std::unique_ptr<RowsMemory> memory_;
  Calls calls_;
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_POPULATION_H_
