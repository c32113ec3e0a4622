// What a forward call hands to the GPU's kernels of one network, and small copies to the device.
#ifndef NEUROEVO_POPULATION_CUDA_CALL_H_
#define NEUROEVO_POPULATION_CUDA_CALL_H_

#include <cstdint>
#include <vector>

#include "gpu/device.h"

namespace neuroevo::cuda {

// The slots of a call that play rows of one network, sorted by row and then by slot. Position i of the call is slot
// slots[i], which plays row rows[i].
struct CallSlots {
  std::vector<int32_t> slots, rows;
  std::vector<int32_t> states;  // of the positions, where networks are recurrent; otherwise none
  // Where the positions play members (networks/low_rank.h), rows are their centers; which members these are, counted
  // from the first one, and their factors c. Otherwise none.
  std::vector<int32_t> members;
  std::vector<float> factors;
  int64_t count() const { return static_cast<int64_t>(slots.size()); }
};

// The memory of all states, on the device.
struct States {
  float* first = nullptr;  // null where no network is recurrent
  int64_t stride = 0;      // floats from state to state
};

// The memory of all members, on the device.
struct MemberMemory {
  float* first = nullptr;  // null where there are none
  int64_t stride = 0;      // floats from member to member
};

// Makes bytes of the device's memory zeros, a multiple of 4.
void Zero(void* device, int64_t bytes, device::Stream stream);

// Copies a few kilobytes from any host memory to the device, in the arguments of kernels: what was at host_src may
// change as soon as this returns. bytes: a multiple of 4.
void Upload(void* device_dst, const void* host_src, int64_t bytes, device::Stream stream);

// Bytes that n values take in a workspace, whose parts all begin at multiples of 256.
template <class T>
int64_t PartBytes(int64_t n) {
  return (n * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
}

// Hands out the parts of a workspace one after the other.
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
