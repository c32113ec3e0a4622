// The threads that step every environment and, on the CPU, evaluate every network. All lanes share one pool, so the
// number of tasks that run at once is what the user asked for, whatever the number of lanes.
//
// Whoever brings a job works on it: with as many lanes as threads and a slot each, a lane does all of its work itself
// and no thread waits for another to wake up. Workers help where a job has more tasks and fewer threads than allowed
// are at work, and make room after a task when a caller waits; callers get their turn in the order in which they came.
// A caller that has just left counts as at work, since it mostly comes back at once: a worker that took its core in
// the meantime would push it off.
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

// In a child process of fork() the pools of the parent have no threads: they take no jobs there, and destroying one
// leaves its threads alone.
class ThreadPool {
 public:
  static constexpr int kMaxThreads = 4096;  // what a typing error would ask for, the machine would not survive

  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // How many tasks run at once, over all jobs.
  int threads() const { return threads_; }

  // Runs body(0) ... body(n - 1), some of them on this thread, and returns when all are over. Rethrows the first
  // exception of a task; tasks that have not started by then are skipped. Must not be called from a task. Without
  // memory for the job std::bad_alloc is thrown before any task. Throws unless the pool is this process's.
  void ParallelFor(int64_t n, const std::function<void(int64_t)>& body);

  // The same with tasks of up to per_task (1 or more) numbers each, as even as can be and one after another. After an
  // exception, what is left of its task is skipped too.
  void ParallelFor(int64_t n, int64_t per_task, const std::function<void(int64_t)>& body);

  // How many threads, the caller's among them, a job that it brought now would find, as far as can be foreseen: into so
  // many tasks it pays to split one that is cheaper in one piece.
  int FreeThreads();

  // Time spent in tasks so far, summed over the threads.
  double BusySeconds();

  // Whether this process made it, and not one that it was forked from.
  bool mine() const { return forks_ == Forks(); }

 private:
  struct Job;
  struct Workers {
    std::condition_variable wake;
    std::vector<std::thread> threads;
  };
  void Help();
  // Places that are neither taken nor those of callers that are expected back. The lock is held.
  int64_t FreePlaces();
  // Wakes workers for this number of tasks, where there are places that no caller is expected back for. The lock is
  // held.
  void WakeHelpers(int64_t tasks);
  // Gives up a place among the running threads. The lock is held.
  void LeavePlace();
  // Runs the job's next task, which there must be. The lock is held, but not in the task; whoever calls this has been
  // counted as running. Afterwards only the job's own caller may touch the job.
  void RunTask(Job* job, std::unique_lock<std::mutex>* lock);
  void Stop();

  const int threads_;
  const int64_t forks_ = Forks();  // when it was made
  std::mutex mutex_;
  std::vector<Job*> jobs_;  // with tasks that no thread has taken yet, oldest first; a job belongs to its ParallelFor
  std::vector<Job*> waiting_callers_;  // for a place, oldest first; empty while there is one
  int running_ = 0;                    // threads at work, at most threads_
  int waiting_workers_ = 0;
  std::vector<int64_t>
      left_;  // when callers left that are not back yet, in ns, oldest first; the last threads_ of them
  int64_t busy_ns_ = 0;
  bool stop_ = false;
  std::unique_ptr<Workers> workers_ = std::make_unique<Workers>();
};

// The process's pool, made at first use with one thread per core that this process may run on. Whoever holds it keeps
// it; SetProcessThreads replaces it for those who ask later. A child process of fork() has one of its own, with as many
// threads as its parent's. Throws for threads outside [1, kMaxThreads].
std::shared_ptr<ThreadPool> ProcessPool();
void SetProcessThreads(int threads);

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_THREAD_POOL_H_
