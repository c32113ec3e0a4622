// The pool of worker threads that steps every environment and, on the CPU, evaluates every network. All lanes share
// one pool, so the number of runnable threads is what the user asked for, whatever the number of lanes.
#ifndef NEUROEVO_CORE_THREAD_POOL_H_
#define NEUROEVO_CORE_THREAD_POOL_H_

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace neuroevo {

// Called once when a job is over, with the first exception that a task threw, or null. It must not throw. Whoever hands
// the exception to another thread should move it: then no reference is left here that could be the last one.
using Done = std::function<void(std::exception_ptr)>;

class ThreadPool {
 public:
  static constexpr int kMaxThreads = 4096;  // what a typing error would ask for, the machine would not survive

  explicit ThreadPool(int threads);
  ~ThreadPool();  // finishes the jobs already submitted
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()); }

  // Runs body(0) ... body(n - 1) on the workers and returns at once. The worker that ends the last task calls done.
  // After a task has thrown, tasks that have not started are skipped. n == 0 calls done from here.
  void ParallelForAsync(int64_t n, std::function<void(int64_t)> body, Done done);

  // The same, waiting for the end; rethrows what a task threw. Must not be called from a worker.
  void ParallelFor(int64_t n, std::function<void(int64_t)> body);

 private:
  struct Job;
  struct State;  // shared with the workers, so that a worker may be the one that destroys the pool
  static void Work(const std::shared_ptr<State>& state);
  void Stop();

  std::shared_ptr<State> state_;
  std::vector<std::thread> workers_;
};

// The process's pool, made at first use with one thread per core that this process may run on. Whoever holds it keeps
// it; SetProcessThreads replaces it for those who ask later. Throws for threads outside [1, kMaxThreads].
std::shared_ptr<ThreadPool> ProcessPool();
void SetProcessThreads(int threads);

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_THREAD_POOL_H_
