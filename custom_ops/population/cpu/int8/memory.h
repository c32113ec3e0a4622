// Cache of the layers of an integer network for a slot. Since screens hardly change between steps, the next step
// updates only changed values. Sums of products are exact, so incremental updates give identical results. Sums are
// cached without the biases, whose scale changes with the exponent of the activations.
#ifndef NEUROEVO_POPULATION_CPU_INT8_MEMORY_H_
#define NEUROEVO_POPULATION_CPU_INT8_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "networks/int8/network.h"
#include "population/cpu/changes.h"
#include "population/cpu/frame.h"
#include "population/slot_memory.h"

namespace neuroevo {

// Returns the frame of the input of step i; i may be the number of steps.
Frame FrameOf(const Int8Network& network, size_t i);

struct Int8Memory : SlotMemory {
  // Input of step i, for i up to the first dense layer.
  struct Image {
    std::vector<uint8_t> bytes;   // in FrameOf(network, i)
    std::vector<uint8_t> before;  // the image that the sums of step i contain, if Int8ConvAddsChanges
    int exponent = 0;
    Changes changes;
  };
  struct Bias {
    int exponent = 0;             // exponent of the values
    std::vector<int32_t> values;  // one per unit or filter of the layer
  };
  struct Conv {
    Bias bias;
    std::vector<int32_t> sums;     // [OH, OW, FILTERS]
    std::vector<int32_t> largest;  // [OH, OW]: largest sum with bias of each position, at least 0
    int shift = 0;                 // activation shift from the sums to the next image
  };
  struct Dense {
    Bias bias;
    std::vector<uint8_t> in;  // input at the last step
    std::vector<int32_t> sums;
    std::vector<uint8_t> out;
    int out_exponent = 0;
  };

  // Allocates the buffers of a network's layers.
  void Begin(const Int8Network& network);

  std::vector<Image> images;  // size: convs.size() + 1
  std::vector<Conv> convs;
  std::vector<Dense> dense;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_INT8_MEMORY_H_
