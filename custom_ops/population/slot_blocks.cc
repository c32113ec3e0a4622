#include "population/slot_blocks.h"

#include <algorithm>
#include <numeric>

namespace neuroevo {

SlotBlocks::SlotBlocks(const std::vector<int64_t>& rows, int threads, int max_slots) : order(rows.size()) {
  const int64_t k = static_cast<int64_t>(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows[a] < rows[b]; });
  const int most = static_cast<int>(std::min<int64_t>(max_slots, std::max<int64_t>(1, (k + threads - 1) / threads)));
  for (int64_t i = 0; i < k; ++i) {
    if (i > 0 && rows[order[i]] == rows[order[i - 1]] && blocks.back().slots < most) {
      ++blocks.back().slots;
    } else {
      blocks.push_back({i, 1});
    }
  }
}

void SlotBlocks::Places(const SlotBlock& block, const Network& network, const void* observations, float* out,
                        const void** block_observations, float** block_outs) const {
  const int64_t bytes = network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype()));
  for (int s = 0; s < block.slots; ++s) {
    const int64_t slot = order[block.first + s];
    block_observations[s] = static_cast<const char*>(observations) + slot * bytes;
    block_outs[s] = out + slot * network.output_size();
  }
}

}  // namespace neuroevo
