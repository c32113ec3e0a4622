// Arguments of a forward call for the kernels of one network, and small copies to the device.
#ifndef NEUROEVO_POPULATION_CUDA_CALL_H_
#define NEUROEVO_POPULATION_CUDA_CALL_H_

#include <cstdint>
#include <vector>

#include "gpu/device.h"

namespace neuroevo::cuda {

// The slots of a call that evaluate rows of one network, sorted by row and then by slot. Position i of the call is slot
// slots[i], which evaluates row rows[i].
struct CallSlots {
  std::vector<int32_t> slots, rows;
  std::vector<int32_t> states;  // state of each position if networks are recurrent, otherwise empty
  // If the positions evaluate members (networks/low_rank.h): rows are their centers, members are the indices among all
  // members, and factors are c of each. Otherwise both are empty.
  std::vector<int32_t> members;
  std::vector<float> factors;
  int64_t count() const { return static_cast<int64_t>(slots.size()); }
};

// The memory of all states, on the device.
struct States {
  float* first = nullptr;  // null if no network is recurrent
  int64_t stride = 0;      // floats from state to state
};

// The memory of all members, on the device.
struct MemberMemory {
  float* first = nullptr;  // null if the population has no members
  int64_t stride = 0;      // floats from member to member
};

// Sets device memory to zero. bytes: a multiple of 4.
void Zero(void* device, int64_t bytes, device::Stream stream);

// Copies a few kilobytes from any host memory to the device in kernel arguments, so host_src may be overwritten as soon
// as this returns. bytes: a multiple of 4.
void Upload(void* device_dst, const void* host_src, int64_t bytes, device::Stream stream);

// Returns the bytes that n values take in a workspace, whose parts are aligned to 256 bytes.
template <class T>
int64_t PartBytes(int64_t n) {
  return (n * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
}

// Allocator of consecutive parts of a workspace.
class Workspace {
 public:
  explicit Workspace(char* next) : next_(next) {}
  template <class T>
  T* Part(int64_t n) {
    T* part = reinterpret_cast<T*>(next_);
    next_ += PartBytes<T>(n);
    return part;
  }

 private:
  char* next_;
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_CALL_H_
