// The GPU as the host sees it: memory, copies, streams. Implemented by nvcc/device.cu with the CUDA runtime, and by
// emulated/device.cc on the CPU, where the kernels are tested on machines without a GPU.
//
// Everything throws Error with the CUDA runtime's own words.
#ifndef NEUROEVO_GPU_DEVICE_H_
#define NEUROEVO_GPU_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

namespace neuroevo::device {

using Stream = void*;  // a cudaStream_t; work of one stream runs in order

// Throws kNotFound with the reason if no GPU is usable: no GPU, no driver, a driver that is too old, or a GPU for which
// the kernels were not compiled.
void CheckAvailable();
// "built with 13.0, the driver supports 12.4": versions of CUDA.
std::string Versions();
// "NVIDIA H200, compute capability 9.0".
std::string Name();
int Multiprocessors();
int64_t FreeBytes();
int64_t TotalBytes();

// The number of the GPU that this thread uses: what is asked above is about it, and streams and memory that the thread
// makes are its. It is 0, the first that the process may use, unless someone chose another: TensorFlow does.
int Current();
// The thread uses this GPU for as long as this lives.
class Using {
 public:
  explicit Using(int device);
  ~Using();
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  int device_, before_;
};

Stream MakeStream();
void FreeStream(Stream stream);
// Waits for all that was queued on the stream, which is of the thread's GPU. The thread sleeps meanwhile: the cores are
// the emulators'.
void Synchronize(Stream stream);

// A point in a stream's work, to measure time with.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // The point is here, after what has been queued on the stream.
  void Record(Stream stream);
  // From this point to a later one; both were recorded, and the stream has been synchronized since. To half a
  // microsecond, or a ten-millionth.
  double SecondsUntil(const Event& later) const;

 private:
  void* event_;  // a cudaEvent_t
};

// 256-byte aligned. kHost: pinned memory, which copies to and from the device go at full speed with.
enum class Where { kDevice, kHost };
void* Allocate(Where where, int64_t bytes);  // throws what was asked for and what is free
void Free(Where where, void* memory) noexcept;

// Queued on the stream; host memory must be pinned to go on while the copy runs.
void CopyIn(void* device_dst, const void* host_src, int64_t bytes, Stream stream);
void CopyOut(void* host_dst, const void* device_src, int64_t bytes, Stream stream);
void CopyWithin(void* device_dst, const void* device_src, int64_t bytes, Stream stream);
void FillBytes(void* device_dst, int value, int64_t bytes, Stream stream);

// Memory with an owner, which grows when more is asked for and then keeps nothing of what it held.
class Memory {
 public:
  explicit Memory(Where where, int64_t bytes = 0) : where_(where) { Grow(bytes); }
  ~Memory() { Free(where_, memory_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void Grow(int64_t bytes) {
    if (bytes <= bytes_) return;
    Free(where_, memory_);
    memory_ = nullptr;
    bytes_ = 0;
    memory_ = Allocate(where_, bytes);
    bytes_ = bytes;
  }
  char* data() const { return static_cast<char*>(memory_); }
  int64_t bytes() const { return bytes_; }

 private:
  Where where_;
  void* memory_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace neuroevo::device

#endif  // NEUROEVO_GPU_DEVICE_H_
