// Rows in the host's memory, and the split of the calls into tasks of the thread pool. A backend adds the arithmetic.
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

  // What this many rows of weights and all members and states take once they are written.
  int64_t Bytes(int64_t weight_rows) const;

 protected:
  // Slots of one row, or of one center's members, that a backend evaluates in one task: enough to share weight reads.
  static constexpr int kMaxSlots = 32;
  static constexpr int64_t kSlack = RowMemory::kSlack;

  HostPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank,
                 int64_t float_rows);

  // As AddNoise in core/noise.h.
  virtual void AddNoiseTo(uint64_t seed, int64_t begin, int64_t count, float scale, const float* in, float* out,
                          const float* spread) = 0;

  // What it keeps of a slot; null for a backend that keeps nothing.
  virtual std::unique_ptr<SlotMemory> MakeSlotMemory() const { return nullptr; }

  // outs[s][:A] = networks_[network] with weights[s] applied to observations[s], from and to states[s], for s in
  // [0, slots), slots <= kMaxSlots. members: whether all these rows are, of one center; otherwise they are one row.
  // states: null where the network is not recurrent. memories[s]: of that slot, from MakeSlotMemory, or null where
  // there is none. Runs as a task.
  virtual void Evaluate(int network, bool members, const RowWeights* weights, int slots,
                        const void* const* observations, float* const* states, SlotMemory* const* memories,
                        float* const* outs) = 0;

  // Theta of the row or the values of the member and, behind them, the statistics of its vbn layers.
  float* Row(int64_t row) const {
    if (!members_.Is(row)) return reinterpret_cast<float*>(memory_->Row(row));
    return reinterpret_cast<float*>(member_memory_->Row(row - members_.weight_rows()));
  }

  RowWeights WeightsOf(int64_t row) const;

  // The layers of a network for rows that are members, or for others.
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

  int64_t chunks_;                                 // of the longest theta
  std::vector<std::vector<Layer>> member_layers_;  // of each network; none where no row is a member
  std::unique_ptr<RowMemory> memory_;              // of the rows that hold weights
  std::unique_ptr<RowMemory> member_memory_;       // of the others; null where there are none
  std::unique_ptr<RowMemory> states_;              // [R]; null where no network is recurrent
  SlotMemories memories_;                          // [R]
};

// rank, float_rows: as in Population::Make.
std::unique_ptr<HostPopulation> MakeCpuPopulation(std::vector<Network> networks, int64_t rows,
                                                  std::shared_ptr<ThreadPool> pool, int rank, int64_t float_rows);
std::unique_ptr<HostPopulation> MakeReferencePopulation(std::vector<Network> networks, int64_t rows,
                                                        std::shared_ptr<ThreadPool> pool, int rank, int64_t float_rows);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_HOST_POPULATION_H_
