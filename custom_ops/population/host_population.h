// Population with rows in host memory, whose calls are split into thread pool tasks. Backends implement the arithmetic.
#ifndef NEUROEVO_POPULATION_HOST_POPULATION_H_
#define NEUROEVO_POPULATION_HOST_POPULATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "population/float_population.h"
#include "population/row_memory.h"
#include "population/row_weights.h"
#include "population/slot_memory.h"

namespace neuroevo {

class HostPopulation : public FloatPopulation {
 public:
  const float* Theta(int64_t row) const override { return Row(row); }

  // Bytes taken by `weight_rows` rows of weights, all members and all states once they are written.
  int64_t Bytes(int64_t weight_rows) const;

 protected:
  // Most slots per task, all of one row or of members of one center: enough to amortize reading the weights.
  static constexpr int kMaxSlots = 32;
  static constexpr int64_t kSlack = RowMemory::kSlack;

  HostPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank,
                 int64_t float_rows);

  // Same contract as AddNoise in core/noise.h.
  virtual void AddNoiseTo(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out,
                          const float* spread) = 0;

  // Returns new per-slot memory, or null if the backend keeps none.
  virtual std::unique_ptr<SlotMemory> MakeSlotMemory() const { return nullptr; }

  // outs[s][:A] = networks_[network] with weights[s] applied to observations[s], for s in [0, slots), slots <=
  // kMaxSlots. states[s] is read and updated in place; states is null if the network is not recurrent. members: if
  // true, all rows are members of one center; otherwise all slots have the same row. memories[s]: memory of that slot
  // from MakeSlotMemory, or null. Runs as a task.
  virtual void Evaluate(int network, bool members, const RowWeights* weights, int slots,
                        const void* const* observations, float* const* states, SlotMemory* const* memories,
                        float* const* outs) = 0;

  // The row's theta or the member's values, followed by the statistics of its vbn layers.
  float* Row(int64_t row) const {
    if (!members_.Is(row)) return reinterpret_cast<float*>(memory_->Row(row));
    return reinterpret_cast<float*>(member_memory_->Row(row - members_.weight_rows()));
  }

  RowWeights WeightsOf(int64_t row) const;

  // Layers of a network, with the layout of members or of rows that hold weights.
  const std::vector<Layer>& LayersOf(int network, bool members) const {
    return members ? member_layers_[network] : networks_[network].layers();
  }

 private:
  void DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) override;
  void DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) override;
  void DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) override;
  void DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src, const std::vector<int32_t>& network,
                 const std::vector<uint64_t>& seeds, const std::vector<float>& scale,
                 const std::vector<int64_t>& spreads) override;
  void DoPerturbMembers(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) override;
  void DoReadStatistics(int64_t row, float* out, int64_t n) override;
  void DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                 const std::vector<int64_t>& states) override;
  void DoClearStates(const std::vector<int64_t>& states) override;

  void InitChunk(int64_t row, uint64_t seed, int64_t begin, int64_t end);

  int64_t chunks_;                                 // number of chunks of the longest theta
  std::vector<std::vector<Layer>> member_layers_;  // per network; empty if the population has no members
  std::unique_ptr<RowMemory> memory_;              // rows that hold weights
  std::unique_ptr<RowMemory> member_memory_;       // members; null if the population has none
  std::unique_ptr<RowMemory> states_;              // [R]; null if no network is recurrent
  SlotMemories memories_;                          // [R]
};

// For rank and float_rows see Population::Make.
std::unique_ptr<HostPopulation> MakeCpuPopulation(std::vector<Network> networks, int64_t rows,
                                                  std::shared_ptr<ThreadPool> pool, int rank, int64_t float_rows);
std::unique_ptr<HostPopulation> MakeReferencePopulation(std::vector<Network> networks, int64_t rows,
                                                        std::shared_ptr<ThreadPool> pool, int rank, int64_t float_rows);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_HOST_POPULATION_H_
