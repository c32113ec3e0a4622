// What the convolutions of a network computed for a slot: the next step computes what has changed, since screens hardly
// change from one step to the next. What one output is has nothing to do with the others, so every bit is as ever.
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
  // What a step reads, in the frame that it needs.
  struct Image {
    Scratch<float> values;
    ConvMarks marks;          // if a convolution reads it
    bool all_changed = true;  // or only `changes`
    Changes changes;
  };

  std::vector<char> observation;
  std::vector<Image> images;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_MEMORY_H_
