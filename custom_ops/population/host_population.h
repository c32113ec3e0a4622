// Rows in the host's memory, and the split of the calls into tasks of the thread pool. A backend adds the arithmetic.
#ifndef NEUROEVO_POPULATION_HOST_POPULATION_H_
#define NEUROEVO_POPULATION_HOST_POPULATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "population/population.h"

namespace neuroevo {

class HostPopulation : public Population {
 public:
  ~HostPopulation() override;

 protected:
  // Slots of one row that a backend evaluates in one task: enough to share its weight reads.
  static constexpr int kMaxSlots = 8;
  // Bytes after the end of a row that belong to nobody: vector loads may run over the end.
  static constexpr int64_t kSlack = 64;

  HostPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool);

  // out[i] = in[i] + scale * noise(seed, begin + i) for i in [0, count); in == nullptr stands for zeros.
  virtual void AddNoiseTo(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out) = 0;

  // outs[s][:A] = networks_[network] with weights theta applied to observations[s], for s in [0, slots),
  // slots <= kMaxSlots. Runs on a worker.
  virtual void Evaluate(int network, const float* theta, int slots, const void* const* observations,
                        float* const* outs) = 0;

 private:
  void DoInit(std::vector<int64_t> rows, std::vector<uint64_t> seeds, Done done) override;
  void DoAssign(std::vector<int64_t> rows, const float* thetas, int64_t stride, Done done) override;
  void DoRead(std::vector<int64_t> rows, float* out, int64_t stride, Done done) override;
  void DoPerturb(std::vector<int64_t> dst, std::vector<int64_t> src, std::vector<int32_t> network,
                 std::vector<uint64_t> seeds, std::vector<float> scale, Done done) override;
  void DoForward(std::vector<int64_t> rows, const void* observations, float* out, Done done) override;

  float* Row(int64_t row) const { return reinterpret_cast<float*>(memory_ + row * pitch_); }
  void InitChunk(int64_t row, uint64_t seed, int64_t begin, int64_t end);

  int64_t chunks_;          // of the longest theta
  int64_t pitch_;           // bytes from row to row
  char* memory_ = nullptr;  // mapped, [R, pitch_]
};

std::unique_ptr<Population> MakeCpuPopulation(std::vector<Network> networks, int64_t rows,
                                              std::shared_ptr<ThreadPool> pool);
std::unique_ptr<Population> MakeReferencePopulation(std::vector<Network> networks, int64_t rows,
                                                    std::shared_ptr<ThreadPool> pool);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_HOST_POPULATION_H_
