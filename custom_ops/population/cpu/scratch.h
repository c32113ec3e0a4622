// A thread's memory for what a task works with. It grows to the largest network and stays.
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
  // n values, aligned to cache lines, with as much slack for a vector's overrun as a row has. What was there is lost.
  T* Get(int64_t n) {
    const size_t needed = n + (kCacheLine + RowMemory::kSlack) / sizeof(T);
    if (memory_.size() < needed) {
      memory_.clear();  // nothing to be copied over
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
