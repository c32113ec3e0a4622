#include "population/cuda/trace.h"

#include <algorithm>
#include <mutex>

#include "core/trace.h"

namespace neuroevo::cuda {

namespace {

// Point in time on both clocks, needed because GPU events only measure the time between two events.
struct Moment {
  int64_t recording;
  int64_t ns;
  device::Event event;
};

// Returns the common point in time of a recording; its accuracy decreases with its age.
std::shared_ptr<const Moment> CommonMoment(device::Stream stream) {
  static std::mutex mutex;
  static auto* common = new std::shared_ptr<Moment>;  // never destroyed: at exit the CUDA runtime may be unloaded first
  const std::lock_guard<std::mutex> lock(mutex);
  if (*common == nullptr || (*common)->recording != trace::Recording()) {
    auto moment = std::make_shared<Moment>();
    moment->recording = trace::Recording();
    device::Synchronize(stream);  // so that the GPU reaches the event immediately
    moment->event.Record(stream);
    moment->ns = trace::Now();
    device::Synchronize(stream);  // other threads may measure from it immediately
    *common = moment;
  }
  return *common;
}

}  // namespace

struct DeviceSpan::Events {
  int64_t made_ns;
  std::shared_ptr<const Moment> common;
  device::Event begin, end;
};

DeviceSpan::DeviceSpan(device::Stream stream) : stream_(stream) {
  if (!trace::Enabled()) return;
  events_ = std::make_unique<Events>();
  events_->common = CommonMoment(stream);
  events_->made_ns = trace::Now();
  events_->begin.Record(stream);
}

DeviceSpan::~DeviceSpan() = default;

void DeviceSpan::End() {
  if (events_ != nullptr) events_->end.Record(stream_);
}

void DeviceSpan::Note(const char* name, int64_t argument, const void* link) {
  if (events_ == nullptr) return;
  const auto ns_between = [](const device::Event& from, const device::Event& to) {
    return static_cast<int64_t>(1e9 * from.SecondsUntil(to));
  };
  const int64_t took_ns = ns_between(events_->begin, events_->end);
  int64_t begin_ns = events_->common->ns + ns_between(events_->common->event, events_->begin);
  // The clocks of the GPU and the CPU drift apart, but the span began after its creation and ended before now.
  begin_ns = std::max(events_->made_ns, std::min(begin_ns, trace::Now() - took_ns));
  trace::Add(name, begin_ns, begin_ns + took_ns, argument, link, trace::Kind::kDevice);
}

}  // namespace neuroevo::cuda
