// Adapter from a callback-based asynchronous call to a blocking call.
#ifndef NEUROEVO_CORE_WAIT_H_
#define NEUROEVO_CORE_WAIT_H_

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

namespace neuroevo {

// Completion callback: called once, with the exception of the failure, or null on success. It must not throw.
using Done = std::function<void(std::exception_ptr)>;

// Run start(done) and wait until done is called; throw the exception passed to done or thrown by start. Must not be
// called from a task of a thread pool.
template <class Start>
void Wait(Start start) {
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  std::exception_ptr error;
  start([&](std::exception_ptr e) {
    // Notified under the lock: the waiter owns these variables and leaves as soon as it can take the lock.
    std::lock_guard<std::mutex> lock(mutex);
    error = std::move(e);
    over = true;
    ended.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  ended.wait(lock, [&] { return over; });
  if (error) std::rethrow_exception(error);
}

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_WAIT_H_
