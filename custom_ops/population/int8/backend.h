// Interface of the backends of int8/population.h: the layout of convolution weights, and the arithmetic.
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
  static constexpr int kMaxSlots = 4;  // most slots per task, all of one row

  virtual ~Int8Backend() = default;

  // Size in bytes and layout of a convolution's weights: ArrangeConv converts them from [KH, KW, C, FILTERS].
  virtual int64_t ConvBytes(const Layer& layer) const = 0;
  virtual void ArrangeConv(const Layer& layer, const int8_t* plain, int8_t* arranged) const = 0;

  // Returns new per-slot memory, or null if the backend keeps none.
  virtual std::unique_ptr<SlotMemory> MakeSlotMemory() const { return nullptr; }

  // outs[s][:A] = the network with a packed row's weights applied to observations[s], s in [0, slots), slots <=
  // kMaxSlots. memories[s]: memory of that slot from MakeSlotMemory, or null. Runs as a task.
  virtual void Evaluate(const Int8Network& network, const char* row, int slots, const void* const* observations,
                        SlotMemory* const* memories, float* const* outs) const = 0;
};

std::unique_ptr<Int8Backend> MakeInt8CpuBackend();
std::unique_ptr<Int8Backend> MakeInt8ReferenceBackend();

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_INT8_BACKEND_H_
