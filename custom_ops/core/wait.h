// Turns a call that ends with a Done into one that returns when it is over.
#ifndef NEUROEVO_CORE_WAIT_H_
#define NEUROEVO_CORE_WAIT_H_

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

namespace neuroevo {

// Called once when something is over, with what it failed of, or null. It must not throw.
using Done = std::function<void(std::exception_ptr)>;

// Runs start(done) and waits until done is called; throws what it passes, or what start throws. Not for tasks of a
// pool.
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
