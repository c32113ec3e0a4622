#include "core/trace.h"

#include <chrono>
#include <memory>
#include <new>

#include "core/error.h"
#include "core/fork.h"

namespace neuroevo::trace {

namespace internal {
std::atomic<bool> enabled{false};
}

namespace {

// Span buffer of one thread. The thread writes spans, then their count; readers read only the counted spans.
struct Buffer {
  Buffer(int64_t capacity, int64_t recording, int32_t thread)
      : spans(new (std::nothrow) Span[capacity]),
        capacity(spans == nullptr ? 0 : capacity),
        recording(recording),
        thread(thread) {}

  // Not initialized, so that unused pages take no memory. Null if the allocation failed: then all spans are dropped,
  // since Add() must not throw.
  const std::unique_ptr<Span[]> spans;
  const int64_t capacity, recording;
  const int32_t thread;
  std::atomic<int64_t> count{0}, dropped{0};
};

struct Recorder {
  ProcessMutex mutex;
  std::vector<std::shared_ptr<Buffer>> buffers;
  int64_t capacity = 0;
};

Recorder& TheRecorder() {
  static auto* recorder = new Recorder;  // never destroyed: at exit, threads may still record spans
  return *recorder;
}

std::atomic<int64_t> recording{0};
std::atomic<int64_t> without_buffer{0};  // spans of threads whose buffer could not be allocated
thread_local std::shared_ptr<Buffer> own_buffer;
thread_local const char* current = "";

Buffer& OwnBuffer() {
  if (own_buffer == nullptr || own_buffer->recording != Recording()) {
    Recorder& recorder = TheRecorder();
    const ProcessLock lock(recorder.mutex);
    const auto thread = static_cast<int32_t>(recorder.buffers.size());
    recorder.buffers.push_back(std::make_shared<Buffer>(recorder.capacity, Recording(), thread));
    own_buffer = recorder.buffers.back();
  }
  return *own_buffer;
}

}  // namespace

void Start(int64_t spans_per_thread) {
  if (spans_per_thread < 1 || spans_per_thread > kMaxSpans) {
    ThrowInvalid("spans per thread is ", spans_per_thread, ", expected 1 to ", kMaxSpans);
  }
  Recorder& recorder = TheRecorder();
  const ProcessLock lock(recorder.mutex);
  recorder.buffers.clear();
  recorder.capacity = spans_per_thread;
  without_buffer = 0;
  ++recording;
  internal::enabled = true;
}

void Stop() { internal::enabled = false; }

Recorded Read() {
  Recorder& recorder = TheRecorder();
  const ProcessLock lock(recorder.mutex);
  Recorded recorded;
  recorded.dropped = without_buffer;
  for (const std::shared_ptr<Buffer>& buffer : recorder.buffers) {
    const int64_t count = buffer->count.load(std::memory_order_acquire);
    recorded.spans.insert(recorded.spans.end(), buffer->spans.get(), buffer->spans.get() + count);
    recorded.dropped += buffer->dropped;
  }
  return recorded;
}

int64_t Recording() { return recording.load(std::memory_order_relaxed); }

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Add(const char* name, int64_t begin_ns, int64_t end_ns, int64_t argument, const void* link, Kind kind) noexcept {
  if (!Enabled()) return;  // stopped since the span began
  Buffer* buffer = nullptr;
  try {
    buffer = &OwnBuffer();
  } catch (const std::bad_alloc&) {
    ++without_buffer;
    return;
  }
  const int64_t count = buffer->count.load(std::memory_order_relaxed);
  if (count == buffer->capacity) {
    ++buffer->dropped;
    return;
  }
  buffer->spans[count] = {name, begin_ns, end_ns, argument, link, buffer->thread, kind};
  buffer->count.store(count + 1, std::memory_order_release);
}

const char* Scope::Current() { return current; }

void Scope::Begin(const char* name, int64_t argument, const void* link) {
  name_ = name;
  outer_ = current;
  current = name;
  argument_ = argument;
  link_ = link;
  begin_ns_ = Now();
}

void Scope::End() {
  current = outer_;
  Add(name_, begin_ns_, Now(), argument_, link_, Kind::kCall);
}

}  // namespace neuroevo::trace
