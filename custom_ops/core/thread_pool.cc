#include "core/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <exception>
#include <system_error>

#include "core/error.h"
#include "core/floating_point.h"
#include "core/trace.h"

namespace neuroevo {

namespace {

// Time for which the place of a caller that has left is reserved: several times the work of a lane between two jobs,
// which is about 10 us, and less than a fifth of a game's step.
constexpr int64_t kExpectedBackNs = 50'000;

}  // namespace

// A ParallelFor call in progress. All members are guarded by the pool's mutex.
struct ThreadPool::Job {
  Job(int64_t tasks, const std::function<void(int64_t)>& run)
      : n(tasks), body(run), name(trace::Enabled() ? trace::Scope::Current() : "") {}

  const int64_t n;
  const std::function<void(int64_t)>& body;
  const char* const name;  // of the caller's innermost trace scope
  int64_t next = 0, over = 0;
  std::exception_ptr error;
  bool has_place = false;           // its caller is counted as running
  std::condition_variable changed;  // the caller got a place, or all tasks are done
};

ThreadPool::ThreadPool(int threads) : threads_(threads) {
  if (threads < 1 || threads > kMaxThreads) ThrowInvalid("threads is ", threads, ", expected 1 to ", kMaxThreads);
  const int workers = threads - 1;  // the calling thread is the remaining one
  workers_->threads.reserve(workers);
  left_.reserve(threads);
  try {
    for (int i = 0; i < workers; ++i) workers_->threads.emplace_back([this] { Help(); });
  } catch (const std::system_error& e) {
    const size_t started = workers_->threads.size();
    Stop();  // destroying an unjoined std::thread would terminate the process
    throw Error(Error::Kind::kInternal, Concat("cannot start thread ", started + 1, " of ", workers, ": ", e.what()));
  } catch (...) {
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  if (mine()) {
    Stop();
  } else {
    (void)workers_.release();  // destroying these would wait for threads that this process does not have
  }
}

void ThreadPool::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  workers_->wake.notify_all();
  for (auto& worker : workers_->threads) worker.join();
}

void ThreadPool::Help() {
  pthread_setname_np(pthread_self(), "neuroevo");  // for profilers
  const DefaultFloatingPoint default_floating_point;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    ++waiting_workers_;
    workers_->wake.wait(lock, [&] { return stop_ || (!jobs_.empty() && running_ < threads_); });
    --waiting_workers_;
    if (stop_) return;
    ++running_;
    // Callers take precedence: their threads would idle, and each would have to wait for entire jobs of other callers.
    while (!jobs_.empty() && waiting_callers_.empty()) RunTask(jobs_.front(), &lock);
    LeavePlace();
  }
}

void ThreadPool::LeavePlace() {
  // The longest-waiting caller is first: a caller that returns with its next job at once must not overtake the others.
  while (!waiting_callers_.empty()) {
    Job* job = waiting_callers_.front();
    waiting_callers_.erase(waiting_callers_.begin());
    if (job->next == job->n) continue;  // other threads took all of its tasks
    job->has_place = true;
    job->changed.notify_one();
    return;
  }
  // No worker is woken for the remaining tasks of other jobs: the leaving caller usually returns before it would wake
  // up.
  --running_;
}

void ThreadPool::WakeHelpers(int64_t tasks) {
  if (tasks <= 0 || waiting_workers_ == 0 || running_ == threads_) return;
  for (int64_t helpers = std::min<int64_t>({tasks, waiting_workers_, FreePlaces()}); helpers > 0; --helpers) {
    workers_->wake.notify_one();
  }
}

int64_t ThreadPool::FreePlaces() {
  const int64_t now = trace::Now();
  const auto expected = [&](int64_t left) { return now - left <= kExpectedBackNs; };
  left_.erase(left_.begin(), std::find_if(left_.begin(), left_.end(), expected));
  return threads_ - running_ - static_cast<int64_t>(left_.size());
}

int ThreadPool::FreeThreads() {
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t places = FreePlaces() + !left_.empty();  // the caller itself has probably just left the pool
  return static_cast<int>(std::clamp<int64_t>(places, 1, threads_));
}

void ThreadPool::RunTask(Job* job, std::unique_lock<std::mutex>* lock) {
  const int64_t index = job->next++;
  if (job->next == job->n) jobs_.erase(std::find(jobs_.begin(), jobs_.end(), job));
  if (!job->error) {
    lock->unlock();
    const int64_t begun = trace::Now();
    std::exception_ptr error;
    try {
      job->body(index);
    } catch (...) {
      error = std::current_exception();
    }
    const int64_t ended = trace::Now();
    trace::Add(job->name, begun, ended, index, nullptr, trace::Kind::kTask);
    lock->lock();
    busy_ns_ += ended - begun;
    if (error && !job->error) job->error = std::move(error);
  }
  // Once the lock is released, the caller may return and destroy the job.
  if (++job->over == job->n) job->changed.notify_one();
}

void ThreadPool::ParallelFor(int64_t n, const std::function<void(int64_t)>& body) {
  if (n <= 0) return;
  if (!mine()) ThrowInvalid("the thread pool belongs to the process that this one was forked from");
  Job job(n, body);
  std::unique_lock<std::mutex> lock(mutex_);
  // Allocate first: once other threads can see the job, this function must not exit before all its tasks are done.
  jobs_.reserve(jobs_.size() + 1);
  waiting_callers_.reserve(waiting_callers_.size() + 1);
  jobs_.push_back(&job);
  if (!left_.empty()) left_.erase(left_.begin());
  if (running_ < threads_) {  // then no caller waits for a place
    ++running_;
    job.has_place = true;
    WakeHelpers(n - 1);
  } else {
    waiting_callers_.push_back(&job);
  }
  while (job.over < n) {
    if (job.has_place && job.next < n) {
      const DefaultFloatingPoint default_floating_point;
      while (job.next < n) {
        RunTask(&job, &lock);
        WakeHelpers(n - job.next - 1);
      }
      job.has_place = false;
      LeavePlace();
    } else {
      job.changed.wait(lock);
    }
  }
  if (job.has_place) LeavePlace();  // granted after other threads had taken all tasks
  const auto waiting = std::find(waiting_callers_.begin(), waiting_callers_.end(), &job);
  if (waiting != waiting_callers_.end()) waiting_callers_.erase(waiting);
  if (left_.size() == static_cast<size_t>(threads_)) left_.erase(left_.begin());
  left_.push_back(trace::Now());
  if (job.error) {
    std::exception_ptr error = std::move(job.error);
    lock.unlock();
    std::rethrow_exception(error);
  }
}

void ThreadPool::ParallelFor(int64_t n, int64_t per_task, const std::function<void(int64_t)>& body) {
  if (per_task < 1) ThrowInvalid("per_task is ", per_task, ", expected 1 or more");
  if (n <= 0) return;
  const int64_t tasks = (n - 1) / per_task + 1, size = n / tasks, longer = n % tasks;  // `longer` tasks have size + 1
  const auto run = [&](int64_t task) {
    const int64_t begin = task * size + std::min(task, longer), end = begin + size + (task < longer ? 1 : 0);
    for (int64_t i = begin; i < end; ++i) body(i);
  };
  ParallelFor(tasks, std::ref(run));  // by reference, since a copy in a std::function would need an allocation
}

double ThreadPool::BusySeconds() {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<double>(busy_ns_) * 1e-9;
}

namespace {

int AvailableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

ProcessMutex process_mutex;

std::shared_ptr<ThreadPool>& ProcessPoolSlot() {
  // Never destroyed: at exit, workers may still be stepping an environment whose library is being unloaded.
  static auto* pool = new std::shared_ptr<ThreadPool>();
  return *pool;
}

}  // namespace

std::shared_ptr<ThreadPool> ProcessPool() {
  const ProcessLock lock(process_mutex);
  auto& pool = ProcessPoolSlot();
  if (!pool || !pool->mine()) pool = std::make_shared<ThreadPool>(pool ? pool->threads() : AvailableCores());
  return pool;
}

void SetProcessThreads(int threads) {
  auto pool = std::make_shared<ThreadPool>(threads);
  const ProcessLock lock(process_mutex);
  auto& current = ProcessPoolSlot();
  if (current && current->mine() && current->threads() == threads) return;
  current.swap(pool);
}

}  // namespace neuroevo
