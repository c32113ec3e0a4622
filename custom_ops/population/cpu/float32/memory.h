// Cache of the convolutions of a network, and of the dense layer after them, for a slot. Since screens hardly change
// between steps, the next step recomputes only changed outputs of convolutions, and sums of the dense layer from the
// first changed input on. The results are bit-identical.
#ifndef NEUROEVO_POPULATION_CPU_FLOAT32_MEMORY_H_
#define NEUROEVO_POPULATION_CPU_FLOAT32_MEMORY_H_

#include <cstdint>
#include <vector>

#include "population/cpu/changes.h"
#include "population/cpu/float32/kernels.h"
#include "population/cpu/scratch.h"
#include "population/slot_memory.h"

namespace neuroevo {

struct Float32Memory : SlotMemory {
  // Input of a step, in the frame that it requires.
  struct Image {
    Scratch<float> values;
    ConvMarks marks;          // used if a convolution reads the image
    bool all_changed = true;  // if false, only the positions in `changes` have changed
    Changes changes;
  };

  std::vector<char> observation;
  std::vector<Image> images;
  DenseMemory dense;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_MEMORY_H_
