// The thread pool that steps the environments and, on the CPU, evaluates the networks. All lanes share one pool, so
// that the number of concurrent tasks is the configured number of threads, whatever the number of lanes.
//
// A caller works on its own job: with as many lanes as threads and one slot per lane, each lane does all of its work
// itself and no thread waits for another to wake up. Workers help if a job has more tasks and fewer threads than
// allowed are running, and yield after a task if a caller waits; callers are served in order of arrival. A caller that
// has just left counts as running, since it usually returns at once: a worker that took its core meanwhile would
// displace it.
#ifndef NEUROEVO_CORE_THREAD_POOL_H_
#define NEUROEVO_CORE_THREAD_POOL_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/fork.h"

namespace neuroevo {

// In a child process of fork() the parent's pools have no threads: they reject jobs, and destroying a pool does not
// join its threads.
class ThreadPool {
 public:
  static constexpr int kMaxThreads = 4096;  // guards against typing errors that would exhaust the machine

  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Maximum number of concurrent tasks over all jobs.
  int threads() const { return threads_; }

  // Run body(0) ... body(n - 1), partly on this thread, and return when all calls have returned. Rethrow the first
  // exception of a task; tasks not started by then are skipped. Must not be called from a task. If memory for the job
  // runs out, throw std::bad_alloc before any task runs. Throw if the pool belongs to a parent process.
  void ParallelFor(int64_t n, const std::function<void(int64_t)>& body);

  // The same with tasks of up to per_task (1 or more) consecutive indices each, split as evenly as possible. After an
  // exception, the remaining indices of its task are skipped too.
  void ParallelFor(int64_t n, int64_t per_task, const std::function<void(int64_t)>& body);

  // Estimate how many threads, the caller's included, would work on a job submitted now. A job that is cheaper
  // unsplit should be split into at most this many tasks.
  int FreeThreads();

  // Time spent in tasks so far, summed over the threads.
  double BusySeconds();

  // Return whether this process created the pool, rather than a process from which it was forked.
  bool mine() const { return forks_ == Forks(); }

 private:
  struct Job;
  struct Workers {
    std::condition_variable wake;
    std::vector<std::thread> threads;
  };
  void Help();
  // Return the number of places neither taken nor reserved for returning callers. The lock must be held.
  int64_t FreePlaces();
  // Wake workers for this number of tasks, as far as places are neither taken nor reserved. The lock must be held.
  void WakeHelpers(int64_t tasks);
  // Release a place among the running threads. The lock must be held.
  void LeavePlace();
  // Run the job's next task, which must exist. The lock must be held and is released during the task; the calling
  // thread must be counted as running. Afterwards only the job's own caller may access the job.
  void RunTask(Job* job, std::unique_lock<std::mutex>* lock);
  void Stop();

  const int threads_;
  const int64_t forks_ = Forks();  // at creation
  std::mutex mutex_;
  std::vector<Job*> jobs_;  // jobs with tasks not yet taken, oldest first; each is owned by its ParallelFor call
  std::vector<Job*> waiting_callers_;  // jobs whose callers wait for a place, oldest first; empty if a place is free
  int running_ = 0;                    // running threads, at most threads_
  int waiting_workers_ = 0;
  std::vector<int64_t>
      left_;  // times in ns at which callers left that have not returned, oldest first; at most threads_ of them
  int64_t busy_ns_ = 0;
  bool stop_ = false;
  std::unique_ptr<Workers> workers_ = std::make_unique<Workers>();
};

// Return the process's pool, created at first use with one thread per core on which this process may run.
// SetProcessThreads replaces the pool for later calls; existing holders keep theirs. A child process of fork() has its
// own pool with as many threads as its parent's. Throws for threads outside [1, kMaxThreads].
std::shared_ptr<ThreadPool> ProcessPool();
void SetProcessThreads(int threads);

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_THREAD_POOL_H_
