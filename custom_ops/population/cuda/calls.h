// Pool of streams with working memory. Each call borrows one while it runs, so calls of different lanes overlap. The
// pool grows to the largest number of concurrent calls.
#ifndef NEUROEVO_POPULATION_CUDA_CALLS_H_
#define NEUROEVO_POPULATION_CUDA_CALLS_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/device.h"

namespace neuroevo::cuda {

class Calls {
 public:
  // All calls use the constructing thread's current GPU, whichever GPU the calling threads have selected.
  Calls() : device_(device::Current()) {}

  struct Call {
    Call() : stream(device::MakeStream()), on_device(device::Where::kDevice), pinned(device::Where::kHost) {}
    ~Call() { device::FreeStream(stream); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    device::Stream stream;
    device::Memory on_device, pinned;
  };

  // Runs body(call) with a borrowed call, then waits for the work that it queued on the call's stream.
  template <class Body>
  void Run(Body body) {
    const device::Using ours(device_);
    std::unique_ptr<Call> call = Take();
    try {
      body(*call);
      device::Synchronize(call->stream);
    } catch (...) {
      // Work queued before the failure may still run, so its memory must not be freed or lent again yet.
      try {
        device::Synchronize(call->stream);
      } catch (...) {
      }
      Return(std::move(call));
      throw;
    }
    Return(std::move(call));
  }

 private:
  std::unique_ptr<Call> Take() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Call> call = std::move(free_.back());
        free_.pop_back();
        return call;
      }
    }
    return std::make_unique<Call>();
  }
  void Return(std::unique_ptr<Call> call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(call));
  }

  const int device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Call>> free_;
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_CALLS_H_
