// Populations on a GPU: rows in its memory, filled and evaluated there. The same bits as on the CPU.
#ifndef NEUROEVO_POPULATION_CUDA_POPULATION_H_
#define NEUROEVO_POPULATION_CUDA_POPULATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "population/cuda/calls.h"
#include "population/cuda/float32/network.h"
#include "population/cuda/int8/network.h"
#include "population/cuda/rows_memory.h"
#include "population/device_forward.h"
#include "population/float_population.h"
#include "population/int8/population.h"

namespace neuroevo::cuda {

class CudaPopulation : public FloatPopulation, public DeviceForward {
 public:
  // memory: where the rows are; null for memory of the GPU's own.
  CudaPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool,
                 std::shared_ptr<MemorySource> memory);

  const float* Theta(int64_t row) const override { return Row(row); }
  int64_t WorkspaceBytes(int64_t count) const override;
  void ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                       const std::vector<int64_t>& states, char* workspace, device::Stream stream) override;

 private:
  void DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) override;
  void DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) override;
  void DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) override;
  void DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src, const std::vector<int32_t>& network,
                 const std::vector<uint64_t>& seeds, const std::vector<float>& scale) override;
  void DoSetReference() override;
  void DoPrepare(const std::vector<int64_t>& rows) override;
  void DoReadStatistics(int64_t row, float* out, int64_t n) override;
  void DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                 const std::vector<int64_t>& states) override;
  void DoClearStates(const std::vector<int64_t>& states) override;

  float* Row(int64_t row) const { return reinterpret_cast<float*>(memory_->data()) + row * stride_; }

  std::vector<CudaNetwork> cuda_networks_;
  int64_t stride_ = 0;  // floats from row to row
  std::unique_ptr<RowsMemory> memory_;
  std::unique_ptr<RowsMemory> states_;  // [R, state_size_] floats; null where no network is recurrent
  device::Memory reference_on_device_{device::Where::kDevice};
  Calls calls_;
};

class CudaInt8Population : public Int8Population, public DeviceForward {
 public:
  CudaInt8Population(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int64_t float_rows,
                     std::shared_ptr<MemorySource> memory);

  int64_t WorkspaceBytes(int64_t count) const override;
  void ForwardOnDevice(const std::vector<int64_t>& rows, const void* observations, float* outputs,
                       const std::vector<int64_t>& states, char* workspace, device::Stream stream) override;

 private:
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
