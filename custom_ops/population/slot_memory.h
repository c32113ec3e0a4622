// Per-slot caches that a backend keeps between Forward calls to avoid recomputing unchanged values. They do not affect
// the results.
#ifndef NEUROEVO_POPULATION_SLOT_MEMORY_H_
#define NEUROEVO_POPULATION_SLOT_MEMORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace neuroevo {

// Base class of a backend's per-slot cache.
struct SlotMemory {
  virtual ~SlotMemory() = default;

  bool known = false;    // whether the cache was computed from the last observation with the current weights
  uint64_t content = 0;  // content number (population.h) of the row it was computed with; 0: empty or incomplete
};

// The caches of all slots, each created on first use.
class SlotMemories {
 public:
  using Make = std::function<std::unique_ptr<SlotMemory>()>;

  // make may return null, which disables the caches.
  SlotMemories(int64_t slots, Make make) : make_(std::move(make)), memories_(slots) {}

  // Returns a slot's cache for an evaluation of a row with this content; call Keep when the evaluation is complete.
  // May be called for different slots concurrently.
  SlotMemory* Lend(int64_t slot, uint64_t content) {
    std::unique_ptr<SlotMemory>& memory = memories_[slot];
    if (memory == nullptr) memory = make_();
    if (memory == nullptr) return nullptr;
    memory->known = memory->content == content;
    memory->content = 0;
    return memory.get();
  }
  static void Keep(SlotMemory* memory, uint64_t content) {
    if (memory != nullptr) memory->content = content;
  }

 private:
  Make make_;
  std::vector<std::unique_ptr<SlotMemory>> memories_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_SLOT_MEMORY_H_
