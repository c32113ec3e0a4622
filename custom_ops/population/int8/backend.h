// What a backend adds to int8/population.h: how it arranges the weights of a convolution, and the arithmetic.
#ifndef NEUROEVO_POPULATION_INT8_BACKEND_H_
#define NEUROEVO_POPULATION_INT8_BACKEND_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "networks/int8/network.h"
#include "population/slot_memory.h"

namespace neuroevo {

class Int8Backend {
 public:
  static constexpr int kMaxSlots = 4;  // of one row in one task

  virtual ~Int8Backend() = default;

  // Bytes that a convolution's weights take, and their order: from [KH, KW, C, FILTERS] to whatever suits the backend.
  virtual int64_t ConvBytes(const Layer& layer) const = 0;
  virtual void ArrangeConv(const Layer& layer, const int8_t* plain, int8_t* arranged) const = 0;

  // What it keeps of a slot; null for a backend that keeps nothing.
  virtual std::unique_ptr<SlotMemory> MakeSlotMemory() const { return nullptr; }

  // outs[s][:A] = the network with a packed row's weights applied to observations[s], s in [0, slots), slots <=
  // kMaxSlots. memories[s]: of that slot, from MakeSlotMemory, or null where there is none. Runs as a task.
  virtual void Evaluate(const Int8Network& network, const char* row, int slots, const void* const* observations,
                        SlotMemory* const* memories, float* const* outs) const = 0;
};

std::unique_ptr<Int8Backend> MakeInt8CpuBackend();
std::unique_ptr<Int8Backend> MakeInt8ReferenceBackend();

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_INT8_BACKEND_H_
