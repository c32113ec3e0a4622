// Where a GPU backend takes the memory of its rows from, when it is not to ask the GPU itself: TensorFlow's allocator,
// which holds the GPU's memory where TensorFlow runs on it.
#ifndef NEUROEVO_GPU_MEMORY_SOURCE_H_
#define NEUROEVO_GPU_MEMORY_SOURCE_H_

#include <cstdint>

namespace neuroevo {

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // Memory of the GPU, 256-byte aligned; throws Error where there is not enough.
  virtual void* Allocate(int64_t bytes) = 0;
  virtual void Free(void* memory) noexcept = 0;
};

}  // namespace neuroevo

#endif  // NEUROEVO_GPU_MEMORY_SOURCE_H_
