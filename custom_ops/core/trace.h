// Tracing: time spans that threads record while a trace is enabled. When disabled, a span costs one relaxed load.
//
// Each thread writes into its own buffer of fixed capacity; spans that do not fit are counted and dropped.
#ifndef NEUROEVO_CORE_TRACE_H_
#define NEUROEVO_CORE_TRACE_H_

#include <atomic>
#include <cstdint>
#include <vector>

namespace neuroevo::trace {

// kCall: a lane's call of environments or networks. kTask: a task of the thread pool. kDevice: kernels on the GPU.
enum class Kind : int32_t { kCall, kTask, kDevice };

struct Span {
  const char* name;          // in static storage
  int64_t begin_ns, end_ns;  // as returned by Now()
  int64_t argument;          // env calls: the first slot; network calls: the number of rows; tasks: the task's index
  const void* link;          // address of a call's observations, which links a forward to its observe; or null
  int32_t thread;            // index of the thread, in order of the threads' first spans
  Kind kind;
};

// Discard earlier recordings and start recording. Throws for a capacity outside [1, kMaxSpans].
constexpr int64_t kMaxSpans = 1 << 24;  // about a gigabyte of address space per thread
void Start(int64_t spans_per_thread);
// Stop recording. Spans that have not ended are not recorded.
void Stop();
struct Recorded {
  std::vector<Span> spans;  // grouped by thread, in order of their ends
  int64_t dropped = 0;
};
Recorded Read();

namespace internal {
extern std::atomic<bool> enabled;
}
inline bool Enabled() { return internal::enabled.load(std::memory_order_relaxed); }
// Return the number of the recording, which is unique per recording.
int64_t Recording();
// Read the monotonic clock in ns, the same as Python's time.perf_counter_ns().
int64_t Now();
// Record a span, or count it as dropped; only while Enabled(). Destructors and workers call this, so it never throws.
void Add(const char* name, int64_t begin_ns, int64_t end_ns, int64_t argument, const void* link, Kind kind) noexcept;

// Scope guard that records its lifetime as a kCall span.
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

  // Return the name of this thread's innermost scope; "" outside of any scope.
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
