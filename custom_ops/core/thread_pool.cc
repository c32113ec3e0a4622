#include "core/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/wait.h"

namespace neuroevo {

struct ThreadPool::Job {
  int64_t n;
  std::function<void(int64_t)> body;
  Done done;
  int64_t next = 0;  // guarded by the pool's mutex
  std::atomic<int64_t> remaining;
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written once, by whoever sets failed
};

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::shared_ptr<Job>> jobs;  // jobs with tasks that no worker has taken yet, oldest first
  bool stop = false;
};

ThreadPool::ThreadPool(int threads) : state_(std::make_shared<State>()) {
  if (threads < 1 || threads > kMaxThreads) ThrowInvalid("threads is ", threads, ", expected 1 to ", kMaxThreads);
  workers_.reserve(threads);
  try {
    for (int i = 0; i < threads; ++i) workers_.emplace_back([state = state_] { Work(state); });
  } catch (const std::system_error& e) {
    Stop();  // a std::thread that is destroyed unjoined would end the process
    throw Error(Error::Kind::kInternal,
                Concat("cannot start thread ", workers_.size() + 1, " of ", threads, ": ", e.what()));
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (auto& worker : workers_) {
    // The last owner may be a worker itself: a done callback that drops the last reference to an object of this pool.
    if (worker.get_id() == std::this_thread::get_id()) {
      worker.detach();
    } else {
      worker.join();
    }
  }
}

void ThreadPool::Work(const std::shared_ptr<State>& state) {
  // A thread inherits the floating-point control word of its maker. TensorFlow's threads flush denormals to zero, and
  // results must not depend on who made the pool.
  std::fesetenv(FE_DFL_ENV);
  pthread_setname_np(pthread_self(), "neuroevo");  // for profilers, and for what experiments/bench.py calls overhead
  std::unique_lock<std::mutex> lock(state->mutex);
  for (;;) {
    state->wake.wait(lock, [&] { return state->stop || !state->jobs.empty(); });
    if (state->jobs.empty()) return;
    std::shared_ptr<Job> job = state->jobs.front();
    const int64_t index = job->next++;
    if (job->next == job->n) state->jobs.pop_front();
    lock.unlock();
    if (!job->failed.load(std::memory_order_acquire)) {
      try {
        job->body(index);
      } catch (...) {
        if (!job->failed.exchange(true)) job->error = std::current_exception();
      }
    }
    if (job->remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      // The callback may destroy everything the job refers to, so nothing of it is touched afterwards.
      // Another worker may drop the job's last reference later, so what is in it goes now.
      Done done = std::move(job->done);
      std::exception_ptr error = std::move(job->error);
      job->body = nullptr;
      job.reset();
      done(std::move(error));
    }
    job.reset();
    lock.lock();
  }
}

void ThreadPool::ParallelForAsync(int64_t n, std::function<void(int64_t)> body, Done done) {
  if (n == 0) {
    done(nullptr);
    return;
  }
  auto job = std::make_shared<Job>();
  job->n = n;
  job->body = std::move(body);
  job->done = std::move(done);
  job->remaining = n;
  // As soon as the job is in the queue, its end may drop the last reference to this pool.
  const std::shared_ptr<State> state = state_;
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->jobs.push_back(std::move(job));
  }
  if (n == 1) {
    state->wake.notify_one();
  } else {
    state->wake.notify_all();
  }
}

void ThreadPool::ParallelFor(int64_t n, std::function<void(int64_t)> body) {
  Wait([&](Done done) { ParallelForAsync(n, std::move(body), std::move(done)); });
}

namespace {

int AvailableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::mutex process_mutex;

std::shared_ptr<ThreadPool>& ProcessPoolSlot() {
  // Never destroyed: at exit, workers may still be stepping an environment whose library is being unloaded.
  static auto* pool = new std::shared_ptr<ThreadPool>();
  return *pool;
}

}  // namespace

std::shared_ptr<ThreadPool> ProcessPool() {
  std::lock_guard<std::mutex> lock(process_mutex);
  auto& pool = ProcessPoolSlot();
  if (!pool) pool = std::make_shared<ThreadPool>(AvailableCores());
  return pool;
}

void SetProcessThreads(int threads) {
  auto pool = std::make_shared<ThreadPool>(threads);
  std::lock_guard<std::mutex> lock(process_mutex);
  if (ProcessPoolSlot() && ProcessPoolSlot()->threads() == threads) return;
  ProcessPoolSlot().swap(pool);
}

}  // namespace neuroevo
