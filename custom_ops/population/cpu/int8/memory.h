// What the layers of an integer network computed for a slot: the next step computes what has changed, since screens
// hardly change from one step to the next. Sums of products are exact, so it does not matter how they have come about,
// and they are kept without the biases, which count in another unit when activations get another exponent.
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

// The frame that step i needs of what it reads; i may be the number of steps.
Frame FrameOf(const Int8Network& network, size_t i);

struct Int8Memory : SlotMemory {
  // What step i reads, i up to the first dense layer's.
  struct Image {
    std::vector<uint8_t> bytes;  // in FrameOf(network, i)
    int exponent = 0;
    Changes changes;
  };
  struct Bias {
    int exponent = 0;             // of the values
    std::vector<int32_t> values;  // of the layer's units or filters
  };
  struct Conv {
    Bias bias;
    std::vector<int32_t> sums;     // [OH, OW, FILTERS]
    std::vector<int32_t> largest;  // [OH, OW]: of a position's sums with biases, at least 0
    int shift = 0;                 // from them to the next image
  };
  struct Dense {
    Bias bias;
    std::vector<uint8_t> in;  // of the last step
    std::vector<int32_t> sums;
    std::vector<uint8_t> out;
    int out_exponent = 0;
  };

  // Makes place for a network's layers.
  void Begin(const Int8Network& network);

  std::vector<Image> images;  // one more than convs
  std::vector<Conv> convs;
  std::vector<Dense> dense;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_INT8_MEMORY_H_
