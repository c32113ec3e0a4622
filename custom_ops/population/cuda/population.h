// Populations on a GPU: rows in its memory, filled and evaluated there. The same bits as on the CPU.
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

  // Theta of the row or the values of the member and, behind them, the statistics of its vbn layers.
  float* Row(int64_t row) const {
    if (!members_.Is(row)) return reinterpret_cast<float*>(memory_->data()) + row * stride_;
    return member_memory_.first + (row - members_.weight_rows()) * member_memory_.stride;
  }
  // Which of cuda_networks_ a row plays, and the members of that one.
  size_t NetworkFor(int64_t row) const { return row_network_[row] + (members_.Is(row) ? networks_.size() : 0); }
  MemberMemory MembersFor(size_t network) const { return network < networks_.size() ? MemberMemory() : member_memory_; }
  void ReadMember(int64_t row, float* out, Calls::Call* call) const;
  // The call's slots that play each of the networks, and behind these those that play members of each.
  std::vector<CallSlots> CallsOf(const std::vector<int64_t>& rows, const std::vector<int64_t>& states) const;

  std::vector<CudaNetwork> cuda_networks_;         // and behind them those of members, if there are any
  std::vector<std::vector<Layer>> member_layers_;  // of each network; none where no row is a member
  int64_t stride_ = 0;                             // floats from row to row
  std::unique_ptr<RowsMemory> memory_;             // of the rows that hold weights
  std::unique_ptr<RowsMemory> members_rows_;       // of the others; null where there are none
  MemberMemory member_memory_;                     // likewise
  std::unique_ptr<RowsMemory> states_;             // [R, state_size_] floats; null where no network is recurrent
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
