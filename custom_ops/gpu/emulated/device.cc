// device.h on the CPU: work on streams runs immediately, and device memory is host memory, initially filled with NaN.
#include "gpu/device.h"

#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "core/trace.h"

namespace neuroevo::device {

namespace {
constexpr int64_t kTotalBytes = int64_t{4} << 30;  // memory of the emulated GPU, for messages

thread_local int current = 0;
int devices[2];  // a stream is the address of its device

void CheckStream(Stream stream) {
  if (stream == nullptr || stream == devices + current) return;
  throw Error(Error::Kind::kInternal, Concat("the stream does not belong to GPU ", current, ", which the thread uses"));
}
}  // namespace

void CheckAvailable() {}
std::string Versions() { return "emulated on the CPU"; }
std::string Name() { return "CUDA emulated on the CPU"; }
int Multiprocessors() { return 8; }
int64_t FreeBytes() { return kTotalBytes; }
int64_t TotalBytes() { return kTotalBytes; }

int Current() { return current; }
Using::Using(int device) : device_(device), before_(current) { current = device_; }
Using::~Using() { current = before_; }

Stream MakeStream() { return devices + current; }
void FreeStream(Stream) {}
void Synchronize(Stream stream) { CheckStream(stream); }

Event::Event() : event_(new int64_t(0)) {}
Event::~Event() { delete static_cast<int64_t*>(event_); }
void Event::Record(Stream) { *static_cast<int64_t*>(event_) = trace::Now(); }
double Event::SecondsUntil(const Event& later) const {
  return 1e-9 * static_cast<double>(*static_cast<int64_t*>(later.event_) - *static_cast<int64_t*>(event_));
}

void* Allocate(Where where, int64_t bytes) {
  void* memory = bytes > kTotalBytes ? nullptr : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) {
    ThrowInvalid("cannot allocate ", bytes, " bytes on the GPU: ", FreeBytes(), " of ", TotalBytes(), " are free");
  }
  if (where == Where::kDevice) memset(memory, 0xff, bytes);
  return memory;
}
void Free(Where, void* memory) noexcept { std::free(memory); }

void CopyIn(void* dst, const void* src, int64_t bytes, Stream stream) {
  CheckStream(stream);
  memcpy(dst, src, bytes);
}
void CopyOut(void* dst, const void* src, int64_t bytes, Stream stream) { CopyIn(dst, src, bytes, stream); }
void CopyWithin(void* dst, const void* src, int64_t bytes, Stream stream) {
  CheckStream(stream);
  memmove(dst, src, bytes);
}
void FillBytes(void* dst, int value, int64_t bytes, Stream stream) {
  CheckStream(stream);
  memset(dst, value, bytes);
}

}  // namespace neuroevo::device
