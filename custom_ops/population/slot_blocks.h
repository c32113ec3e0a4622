// The slots of a Forward call grouped by row, so that slots of one row share its weight reads; in place of rows there
// may be other numbers, equal where slots share reads.
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

  // At most max_slots slots a block, and fewer where workers would stay idle otherwise; how slots are grouped changes
  // no result.
  SlotBlocks(const std::vector<int64_t>& rows, int threads, int max_slots);

  // Where the observations of a block's slots are, and where their outputs go; one of each per slot.
  void Places(const SlotBlock& block, const Network& network, const void* observations, float* out,
              const void** block_observations, float** block_outs) const;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_SLOT_BLOCKS_H_
