// Scratch memory of a thread for the temporary values of a task. It grows to the largest network and is kept.
#ifndef NEUROEVO_POPULATION_CPU_SCRATCH_H_
#define NEUROEVO_POPULATION_CPU_SCRATCH_H_

#include <cstdint>
#include <vector>

#include "population/row_memory.h"

namespace neuroevo {

constexpr int64_t kCacheLine = 64;  // bytes

template <class T>
class Scratch {
 public:
  // Returns n uninitialized values, aligned to cache lines, with the same slack for vector loads as a row.
  T* Get(int64_t n) {
    const size_t needed = n + (kCacheLine + RowMemory::kSlack) / sizeof(T);
    if (memory_.size() < needed) {
      memory_.clear();  // avoids copying the old values
      memory_.resize(needed);
    }
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (kCacheLine - address % kCacheLine) % kCacheLine / sizeof(T);
  }

 private:
  std::vector<T> memory_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_SCRATCH_H_
