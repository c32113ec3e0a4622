// Streams and the memory that calls need beside the rows. A call borrows one for as long as it runs, so that lanes'
// calls overlap; there are as many as calls have ever run at once.
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
  // Calls are of the GPU that the thread uses now, whichever one the threads use that make them.
  Calls() : device_(device::Current()) {}

  struct Call {
    Call() : stream(device::MakeStream()), on_device(device::Where::kDevice), pinned(device::Where::kHost) {}
    ~Call() { device::FreeStream(stream); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    device::Stream stream;
    device::Memory on_device, pinned;
  };

  // body(call) with a call of its own; then waits for what it has queued on the stream.
  template <class Body>
  void Run(Body body) {
    const device::Using ours(device_);
    std::unique_ptr<Call> call = Take();
    try {
      body(*call);
      device::Synchronize(call->stream);
    } catch (...) {
      // What was queued before the failure may still run: its memory is not to be freed or lent again before.
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
