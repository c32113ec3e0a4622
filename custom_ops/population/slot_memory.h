// What a backend keeps of a slot from one Forward call to the next, so that the next one has less to compute. Results
// do not depend on it.
#ifndef NEUROEVO_POPULATION_SLOT_MEMORY_H_
#define NEUROEVO_POPULATION_SLOT_MEMORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace neuroevo {

// A backend derives its own from this.
struct SlotMemory {
  virtual ~SlotMemory() = default;

  bool known = false;    // whether it holds what the weights that are to be evaluated made of the last observation
  uint64_t content = 0;  // of the row with which it was filled (population.h); 0: with none, or not to the end
};

// One for each slot, made when it is first wanted.
class SlotMemories {
 public:
  using Make = std::function<std::unique_ptr<SlotMemory>()>;

  // make may return null: then slots have none.
  SlotMemories(int64_t slots, Make make) : make_(std::move(make)), memories_(slots) {}

  // That of a slot, for an evaluation with a row of this content; then Keep says that the evaluation came to its end.
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
