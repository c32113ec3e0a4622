// The thread pool: every task runs once, at most `threads` tasks concurrently, exceptions, concurrent jobs, forks,
// floating-point modes.
#include "core/thread_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <cfloat>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "native/check.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

using namespace neuroevo;

namespace {

// One-time event for which threads can wait.
class Event {
 public:
  void Set() {
    std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

}  // namespace

TEST(EveryIndexOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    CHECK_EQ(pool.threads(), threads);
    for (int64_t n : {1, 2, 3, 17, 1000}) {
      std::vector<std::atomic<int>> runs(n);
      pool.ParallelFor(n, [&](int64_t i) { ++runs.at(i); });
      for (const auto& count : runs) CHECK_EQ(count.load(), 1);
    }
  }
}

TEST(TasksOfSeveralNumbers) {
  // Three tasks of up to 4: the first numbers of all wait for each other, so that each task has a thread of its own.
  ThreadPool pool(3);
  const std::vector<int64_t> begins = {0, 4, 7, 10};
  std::vector<std::thread::id> threads(10);
  std::vector<int> runs(10);
  std::atomic<int> begun{0};
  pool.ParallelFor(10, 4, [&](int64_t i) {
    if (i == 0 || i == 4 || i == 7) {
      for (++begun; begun < 3;) std::this_thread::yield();
    } else {
      CHECK_EQ(runs[i - 1], 1);
    }
    ++runs[i];
    threads[i] = std::this_thread::get_id();
  });
  CHECK_EQ(runs, std::vector<int>(10, 1));
  for (int task = 0; task < 3; ++task) {
    for (int64_t i = begins[task]; i < begins[task + 1]; ++i) CHECK(threads[i] == threads[begins[task]]);
  }
  CHECK_EQ(std::set<std::thread::id>(threads.begin(), threads.end()).size(), 3);
  for (int64_t n : {0, 1, 2, 5, 16, 17, 100}) {
    for (int64_t per_task : {int64_t{1}, int64_t{3}, int64_t{16}, std::numeric_limits<int64_t>::max()}) {
      std::vector<std::atomic<int>> all(n);
      pool.ParallelFor(n, per_task, [&](int64_t i) { ++all.at(i); });
      for (const auto& count : all) CHECK_EQ(count.load(), 1);
    }
  }
  CHECK_THROWS(pool.ParallelFor(1, 0, [](int64_t) {}), "per_task is 0, expected 1 or more");
}

TEST(NothingToDo) {
  ThreadPool pool(2);
  pool.ParallelFor(0, [](int64_t) { throw std::runtime_error("there is no task"); });
}

TEST(OneThreadIsTheCallersOwn) {
  ThreadPool pool(1);
  const std::thread::id own = std::this_thread::get_id();
  std::vector<int64_t> order;  // no lock: every task must run on this thread
  pool.ParallelFor(5, [&](int64_t i) {
    CHECK(std::this_thread::get_id() == own);
    order.push_back(i);
  });
  CHECK_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(TasksOfOneJobRunTogether) {
  // Each task waits until all three are at work: with fewer than three threads this would never end.
  ThreadPool pool(3);
  for (int run = 0; run < 100; ++run) {
    std::atomic<int> inside{0};
    Event all_in;
    pool.ParallelFor(3, [&](int64_t) {
      if (++inside == 3) all_in.Set();
      all_in.Wait();
    });
    CHECK_EQ(inside.load(), 3);
  }
}

TEST(WorkersComeForThePlacesOfCallersThatStayAway) {
  // Three callers leave at about the same time and do not come back: their places are kept for them for a moment only,
  // and the job of a fourth one gets its helper when its first task is over, at the latest.
  for (int run = 0; run < 20; ++run) {
    ThreadPool pool(2);
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller) {
      callers.emplace_back([&] { pool.ParallelFor(1, [](int64_t) {}); });
    }
    for (auto& caller : callers) caller.join();
    std::atomic<int> inside{0};
    Event all_in;
    pool.ParallelFor(3, [&](int64_t i) {
      if (i == 0) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (++inside == 2) all_in.Set();
      all_in.Wait();
    });
    CHECK_EQ(inside.load(), 2);
  }
}

TEST(FreeThreadsAreThoseThatNoJobHas) {
  ThreadPool pool(3);
  CHECK_EQ(pool.FreeThreads(), 3);
  Event begun, over;
  std::thread caller([&] {
    pool.ParallelFor(1, [&](int64_t) {
      begun.Set();
      over.Wait();
    });
  });
  begun.Wait();
  CHECK_EQ(pool.FreeThreads(), 2);
  over.Set();
  caller.join();
  CHECK_EQ(pool.FreeThreads(), 3);  // the caller that has just left is this thread
}

TEST(NeverMoreTasksAtOnceThanThreads) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    std::atomic<int> inside{0}, most{0}, tasks{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 6; ++caller) {
      callers.emplace_back([&] {
        for (int job = 0; job < 50; ++job) {
          pool.ParallelFor(1 + job % 4, [&](int64_t) {
            const int now = ++inside;
            int before = most.load();
            while (now > before && !most.compare_exchange_weak(before, now)) {
            }
            std::this_thread::yield();
            ++tasks;
            --inside;
          });
        }
      });
    }
    for (auto& caller : callers) caller.join();
    CHECK(most.load() <= threads);
    CHECK_EQ(tasks.load(), 6 * (12 * (1 + 2 + 3 + 4) + 1 + 2));
  }
}

TEST(ACallerWithoutAPlaceIsHelpedOrGetsOne) {
  // The pool's only place is taken; the next caller gets it as soon as it is free.
  ThreadPool pool(1);
  Event entered, leave;
  std::thread first([&] {
    pool.ParallelFor(1, [&](int64_t) {
      entered.Set();
      leave.Wait();
    });
  });
  entered.Wait();
  std::atomic<int> tasks{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] { pool.ParallelFor(4, [&](int64_t) { ++tasks; }); });
  }
  leave.Set();
  first.join();
  for (auto& other : others) other.join();
  CHECK_EQ(tasks.load(), 12);
}

TEST(CallersTakeTurns) {
  // Six callers for two places, each back with its next job at once: while one does 50 jobs, no other is overtaken
  // often.
  ThreadPool pool(2);
  constexpr int kCallers = 6, kJobs = 50;
  std::vector<std::atomic<int>> jobs(kCallers);
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      while (!stop) {
        pool.ParallelFor(1, [](int64_t) { std::this_thread::sleep_for(std::chrono::microseconds(300)); });
        if (++jobs[caller] == kJobs) stop = true;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  for (const auto& count : jobs) CHECK(count.load() >= kJobs / 2);
}

TEST(AWorkerMakesRoomForACaller) {
  // Two places: one is its caller's, in a task that waits for the other caller; a worker does the tasks that follow.
  ThreadPool pool(2);
  constexpr int64_t kTasks = 1000;
  std::atomic<int64_t> started{0};
  Event worker_at_work, over;
  std::atomic<bool> other_came{false};
  std::thread caller([&] {
    const std::thread::id own = std::this_thread::get_id();
    pool.ParallelFor(kTasks, [&](int64_t) {
      ++started;
      if (std::this_thread::get_id() == own) return over.Wait();
      worker_at_work.Set();
      if (!other_came) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  });
  worker_at_work.Wait();
  int64_t started_before = 0;
  pool.ParallelFor(1, [&](int64_t) {
    started_before = started;
    other_came = true;
    over.Set();
  });
  caller.join();
  CHECK(started_before < kTasks);
  CHECK_EQ(started.load(), kTasks);
}

TEST(BusySecondsAreThoseOfTasks) {
  ThreadPool pool(2);
  CHECK_EQ(pool.BusySeconds(), 0.0);
  pool.ParallelFor(2, [](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  const double busy = pool.BusySeconds();
  CHECK(busy >= 0.04);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_EQ(pool.BusySeconds(), busy);
}

TEST(AnExceptionReachesTheCallerAndTheRestIsSkipped) {
  ThreadPool pool(1);
  std::set<int64_t> ran;
  CHECK_THROWS(pool.ParallelFor(100,
                                [&](int64_t i) {
                                  ran.insert(i);
                                  if (i == 3) ThrowInvalid("task ", i, " is bad");
                                }),
               "task 3 is bad");
  CHECK_EQ(ran, (std::set<int64_t>{0, 1, 2, 3}));
  std::atomic<int> after{0};
  pool.ParallelFor(10, [&](int64_t) { ++after; });
  CHECK_EQ(after.load(), 10);
}

TEST(OneOfManyExceptions) {
  ThreadPool pool(4);
  for (int run = 0; run < 100; ++run) {
    std::string message;
    try {
      pool.ParallelFor(20, [](int64_t i) { ThrowInvalid("task ", i, " is bad"); });
    } catch (const std::exception& e) {
      message = e.what();
    }
    CHECK_EQ(message.substr(0, 5), "task ");
  }
}

TEST(ExceptionsOfAnyTypeAndOfOneJobOnly) {
  ThreadPool pool(2);
  for (int run = 0; run < 100; ++run) {
    std::atomic<int> other_tasks{0};
    std::thread other([&] { pool.ParallelFor(30, [&](int64_t) { ++other_tasks; }); });
    int caught = 0;
    try {
      pool.ParallelFor(5, [](int64_t) { throw 42; });
    } catch (int value) {
      caught = value;
    }
    other.join();
    CHECK_EQ(caught, 42);
    CHECK_EQ(other_tasks.load(), 30);
  }
}

TEST(ManyJobsFromManyThreads) {
  ThreadPool pool(3);
  constexpr int kThreads = 5, kJobs = 200;
  std::atomic<int64_t> sum{0};
  int64_t expected = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    for (int64_t job = 0; job < kJobs; ++job) {
      const int64_t n = 1 + (job * 7 + t) % 13;
      expected += n * (n - 1) / 2;
    }
    threads.emplace_back([&, t] {
      for (int64_t job = 0; job < kJobs; ++job) {
        pool.ParallelFor(1 + (job * 7 + t) % 13, [&](int64_t i) { sum += i; });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(sum.load(), expected);
}

TEST(ThreadsOutOfRange) {
  CHECK_THROWS(ThreadPool(0), "threads is 0, expected 1 to 4096");
  CHECK_THROWS(ThreadPool(-3), "threads is -3, expected 1 to 4096");
  CHECK_THROWS(ThreadPool(4097), "threads is 4097, expected 1 to 4096");
  CHECK_THROWS(SetProcessThreads(0), "threads is 0, expected 1 to 4096");
}

TEST(ProcessThreads) {
  SetProcessThreads(3);
  const std::shared_ptr<ThreadPool> three = ProcessPool();
  CHECK_EQ(three->threads(), 3);
  CHECK(ProcessPool() == three);
  SetProcessThreads(3);  // no change: the existing pool remains the process's pool
  CHECK(ProcessPool() == three);
  SetProcessThreads(1);
  CHECK_EQ(ProcessPool()->threads(), 1);
  CHECK_THROWS(SetProcessThreads(-1), "threads is -1");
  CHECK_EQ(ProcessPool()->threads(), 1);
  std::atomic<int> tasks{0};
  three->ParallelFor(9, [&](int64_t) { ++tasks; });  // holders of the old pool keep it
  CHECK_EQ(tasks.load(), 9);
}

TEST(ProcessThreadsFromManyThreads) {
  std::atomic<int> tasks{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        SetProcessThreads(1 + (t + i) % 3);
        ProcessPool()->ParallelFor(5, [&](int64_t) { ++tasks; });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(tasks.load(), 4 * 10 * 5);
}

TEST(RoundingIsTheDefaultWhoeverMakesThePool) {
  volatile float one = 1, three = 3;
  const float nearest = one / three;
  std::fesetround(FE_DOWNWARD);
  ThreadPool pool(2);
  volatile float downward = one / three;  // volatile: computed here and not a line later
  std::fesetround(FE_TONEAREST);
  CHECK(downward < nearest);  // that is, the maker did round downward
  std::vector<float> quotients(8);
  pool.ParallelFor(8, [&](int64_t i) { quotients[i] = one / three; });
  for (float quotient : quotients) CHECK_EQ(quotient, nearest);
}

TEST(ACallersRoundingIsPutBack) {
  volatile float one = 1, three = 3;
  const float nearest = one / three;
  ThreadPool pool(1);
  std::fesetround(FE_DOWNWARD);
  float in_task = 0;
  pool.ParallelFor(1, [&](int64_t) { in_task = one / three; });
  volatile float after = one / three;
  std::fesetround(FE_TONEAREST);
  CHECK_EQ(in_task, nearest);
  CHECK(after < nearest);
}

#if defined(__SSE2__)
TEST(TasksComputeDenormalsWhoeverMakesThePoolOrBringsTheJob) {
  constexpr unsigned int kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  const unsigned int mine = _mm_getcsr();
  volatile float smallest = FLT_MIN, half = 0.5f, many = 1024;
  const float denormal = smallest * half;
  CHECK(denormal > 0);
  volatile float input = denormal;
  _mm_setcsr(mine | kFlushToZero | kDenormalsAreZero);
  ThreadPool pool(2);
  volatile float flushed_result = smallest * half, flushed_input = input * many;
  std::vector<float> results(8), inputs(8);
  std::vector<double> doubles(8);
  volatile double smallest_double = DBL_MIN, half_double = 0.5;
  pool.ParallelFor(8, [&](int64_t i) {
    results[i] = smallest * half;
    inputs[i] = input * many;
    doubles[i] = smallest_double * half_double;
  });
  volatile float flushed_afterwards = smallest * half;
  _mm_setcsr(mine);
  CHECK(flushed_result == 0);  // that is, this thread did flush
  CHECK(flushed_input == 0);
  CHECK(flushed_afterwards == 0);
  for (float result : results) CHECK_EQ(result, denormal);
  for (float result : inputs) CHECK_EQ(result, FLT_MIN * 512);
  for (double result : doubles) CHECK_EQ(result, DBL_MIN / 2);
}
#endif

TEST(AChildOfAForkLeavesItsParentsPoolsAlone) {
  SetProcessThreads(2);
  auto pool = std::make_unique<ThreadPool>(3);
  const std::shared_ptr<ThreadPool> process_pool = ProcessPool();
  std::atomic<bool> over{false};
  std::thread caller([&] {
    while (!over) pool->ParallelFor(9, [](int64_t) {});
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      int wrong = pool->mine();
      try {
        process_pool->ParallelFor(1, [](int64_t) {});
        ++wrong;
      } catch (const std::exception& error) {
        wrong += std::string(error.what()) != "the thread pool belongs to the process that this one was forked from";
      }
      pool.reset();  // must not wait for threads that do not exist in the child
      if (!kForksStartThreads) _exit(wrong);
      std::atomic<int> tasks{0};
      ProcessPool()->ParallelFor(9, [&](int64_t) { ++tasks; });
      _exit(wrong + (ProcessPool() == process_pool) + (ProcessPool()->threads() != 2) + (tasks != 9));
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
  }
  over = true;
  caller.join();
}
