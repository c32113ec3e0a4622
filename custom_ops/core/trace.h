// What happened when: spans of time that threads note while a trace is recorded. Off, a span costs one relaxed load.
//
// Every thread writes into a buffer of its own, of fixed capacity; what no longer fits is counted and dropped.
#ifndef NEUROEVO_CORE_TRACE_H_
#define NEUROEVO_CORE_TRACE_H_

#include <atomic>
#include <cstdint>
#include <vector>

namespace neuroevo::trace {

// kCall: of a lane, into environments or networks. kTask: of the thread pool. kDevice: kernels on the GPU.
enum class Kind : int32_t { kCall, kTask, kDevice };

struct Span {
  const char* name;          // of static storage
  int64_t begin_ns, end_ns;  // of Now()
  int64_t argument;          // of env calls the first slot, of the others how many rows; of tasks which
  const void* link;          // where a call's observations are: tells which observe a forward came from; or null
  int32_t thread;            // in order of their first spans
  Kind kind;
};

// Drops what was recorded before, and records from now on. Throws for a capacity outside [1, kMaxSpans].
constexpr int64_t kMaxSpans = 1 << 24;  // about a gigabyte of address space a thread
void Start(int64_t spans_per_thread);
// Spans that have not ended by then are not recorded.
void Stop();
struct Recorded {
  std::vector<Span> spans;  // by thread, each in order of its ends
  int64_t dropped = 0;
};
Recorded Read();

namespace internal {
extern std::atomic<bool> enabled;
}
inline bool Enabled() { return internal::enabled.load(std::memory_order_relaxed); }
// Differs from recording to recording.
int64_t Recording();
// The monotonic clock, as Python's time.perf_counter_ns().
int64_t Now();
// Notes a span, or that it found no room; only while Enabled(). Destructors and workers call it, so it never throws.
void Add(const char* name, int64_t begin_ns, int64_t end_ns, int64_t argument, const void* link, Kind kind) noexcept;

// The scope that it lives in, as a kCall.
class Scope {
 public:
  explicit Scope(const char* name, int64_t argument, const void* link = nullptr) {
    if (Enabled()) Begin(name, argument, link);
  }
  ~Scope() {
    if (name_ != nullptr) End();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // The name of this thread's innermost scope; "" outside of any.
  static const char* Current();

 private:
  void Begin(const char* name, int64_t argument, const void* link);
  void End();

  const char* name_ = nullptr;
  const char* outer_;
  int64_t begin_ns_, argument_;
  const void* link_;
};

}  // namespace neuroevo::trace

#endif  // NEUROEVO_CORE_TRACE_H_
