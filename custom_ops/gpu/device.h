// Host interface of the GPU: memory, copies and streams. Implemented by nvcc/device.cu with the CUDA runtime and by
// emulated/device.cc on the CPU, which tests the kernels on machines without a GPU.
//
// All functions throw Error with the message of the CUDA runtime.
#ifndef NEUROEVO_GPU_DEVICE_H_
#define NEUROEVO_GPU_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

namespace neuroevo::device {

using Stream = void*;  // a cudaStream_t; the work queued on a stream runs in order

// Throws kNotFound with the reason if no GPU can be used: no GPU, no driver, a driver that is too old, or a GPU for
// which the kernels were not compiled.
void CheckAvailable();
// Returns the versions of CUDA, such as "built with 13.0, the driver supports 12.4".
std::string Versions();
// Returns the name of the GPU, such as "NVIDIA H200, compute capability 9.0".
std::string Name();
int Multiprocessors();
int64_t FreeBytes();
int64_t TotalBytes();

// Returns the index of the thread's current GPU, to which the functions above refer and on which the thread allocates
// streams and memory. It is 0, the first visible GPU, unless other code, such as TensorFlow, has selected another GPU.
int Current();
// Scope in which the given GPU is the thread's current GPU.
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
// Waits for all work queued on the stream, which must belong to the current GPU. The thread sleeps meanwhile, which
// leaves the cores to the emulators.
void Synchronize(Stream stream);

// Point in a stream's work, for measuring time.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Records the event after the work that has been queued on the stream.
  void Record(Stream stream);
  // Returns the seconds from this event to a later one. Both must have been recorded, and the stream synchronized
  // since. Accurate to half a microsecond or, for long times, a relative error of 1e-7.
  double SecondsUntil(const Event& later) const;

 private:
  void* event_;  // a cudaEvent_t
};

// Memory is aligned to 256 bytes. kHost: pinned memory, which is copied to and from the device at full speed.
enum class Where { kDevice, kHost };
void* Allocate(Where where, int64_t bytes);  // throws with the requested and the free bytes
void Free(Where where, void* memory) noexcept;

// Copies and fills are queued on the stream. They are asynchronous only if the host memory is pinned.
void CopyIn(void* device_dst, const void* host_src, int64_t bytes, Stream stream);
void CopyOut(void* host_dst, const void* device_src, int64_t bytes, Stream stream);
void CopyWithin(void* device_dst, const void* device_src, int64_t bytes, Stream stream);
void FillBytes(void* device_dst, int value, int64_t bytes, Stream stream);

// Owner of memory that can grow; growing discards the contents.
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
