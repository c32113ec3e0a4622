// The slots of a Forward call grouped by row, so that slots of one row share its weight reads. Instead of row numbers,
// callers may pass any keys that are equal for slots that share reads.
#ifndef NEUROEVO_POPULATION_SLOT_BLOCKS_H_
#define NEUROEVO_POPULATION_SLOT_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "networks/network.h"

namespace neuroevo {

// One task: slots order[first], ..., order[first + slots - 1], all of the same row.
struct SlotBlock {
  int64_t first;
  int slots;
};

struct SlotBlocks {
  std::vector<int64_t> order;  // the slots sorted by row
  std::vector<SlotBlock> blocks;

  // A block has at most max_slots slots, and fewer if threads would be idle otherwise. The grouping does not affect the
  // results.
  SlotBlocks(const std::vector<int64_t>& rows, int threads, int max_slots);

  // Sets, for each slot of a block, the pointers to its observation and to its output.
  void Places(const SlotBlock& block, const Network& network, const void* observations, float* out,
              const void** block_observations, float** block_outs) const;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_SLOT_BLOCKS_H_
