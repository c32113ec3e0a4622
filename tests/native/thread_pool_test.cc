// The thread pool: every task once, done once, exceptions, many jobs at a time, and how a pool ends.
#include "core/thread_pool.h"

#include <atomic>
#include <cfenv>
#include <cfloat>
#include <condition_variable>
#include <cstdint>
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

// Something that happens once and that threads can wait for.
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

std::string MessageOf(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

// Occupies every worker of the pool until the event is set; returns when all of them are in it.
void Occupy(ThreadPool* pool, const std::shared_ptr<Event>& leave) {
  auto entered = std::make_shared<std::atomic<int>>(0);
  auto all_in = std::make_shared<Event>();
  const int threads = pool->threads();
  pool->ParallelForAsync(
      threads,
      [=](int64_t) {
        if (++*entered == threads) all_in->Set();
        leave->Wait();
      },
      [](std::exception_ptr) {});
  all_in->Wait();
}

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

TEST(NothingToDoIsDoneAtOnce) {
  ThreadPool pool(2);
  int calls = 0;  // no lock: done must be called by this thread
  pool.ParallelForAsync(
      0, [](int64_t) { throw std::runtime_error("there is no task"); },
      [&](std::exception_ptr error) {
        CHECK(!error);
        ++calls;
      });
  CHECK_EQ(calls, 1);
  pool.ParallelFor(0, [](int64_t) { throw std::runtime_error("there is no task"); });
}

TEST(DoneOnceAfterTheLastTask) {
  std::atomic<int> tasks{0}, dones{0}, tasks_at_done{-1};
  {
    ThreadPool pool(3);
    for (int job = 0; job < 50; ++job) {
      tasks = dones = 0;
      Event over;
      pool.ParallelForAsync(
          7, [&](int64_t) { ++tasks; },
          [&](std::exception_ptr error) {
            tasks_at_done = error ? -2 : tasks.load();
            ++dones;
            over.Set();
          });
      over.Wait();
      CHECK_EQ(tasks_at_done.load(), 7);
    }
  }
  CHECK_EQ(dones.load(), 1);  // the pool's end would have shown a second call
}

TEST(CapturesOfTheBodyDieBeforeDone) {
  // Else a worker that is late could be the one that destroys what the caller believes to be free.
  ThreadPool pool(4);
  for (int run = 0; run < 1000; ++run) {
    auto captured = std::make_shared<int>(1);
    std::weak_ptr<int> watch = captured;
    Event over;
    bool gone = false;
    pool.ParallelForAsync(
        4, [captured = std::move(captured)](int64_t) { (void)*captured; },
        [&](std::exception_ptr) {
          gone = watch.expired();
          over.Set();
        });
    over.Wait();
    CHECK(gone);
  }
}

TEST(ExceptionReachesDoneAndTheRestIsSkipped) {
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
    std::atomic<int> dones{0};
    std::string message;
    Event over;
    pool.ParallelForAsync(
        20, [](int64_t i) { ThrowInvalid("task ", i, " is bad"); },
        [&](std::exception_ptr error) {
          message = MessageOf(error);
          ++dones;
          over.Set();
        });
    over.Wait();
    CHECK_EQ(dones.load(), 1);
    CHECK_EQ(message.substr(0, 5), "task ");
  }
}

TEST(ExceptionsOfAnyTypeAndOfOneJobOnly) {
  ThreadPool pool(2);
  std::atomic<int> other_tasks{0};
  std::string other = "not called";
  Event other_over;
  auto leave = std::make_shared<Event>();
  Occupy(&pool, leave);
  pool.ParallelForAsync(
      30, [&](int64_t) { ++other_tasks; },
      [&](std::exception_ptr error) {
        other = MessageOf(error);
        other_over.Set();
      });
  int caught = 0;
  std::thread thrower([&] {
    try {
      pool.ParallelFor(5, [](int64_t) { throw 42; });
    } catch (int value) {
      caught = value;
    }
  });
  leave->Set();
  thrower.join();
  other_over.Wait();
  CHECK_EQ(caught, 42);
  CHECK_EQ(other, "");
  CHECK_EQ(other_tasks.load(), 30);
}

TEST(ManyJobsFromManyThreads) {
  ThreadPool pool(3);
  constexpr int kThreads = 5, kJobs = 100;
  std::atomic<int64_t> sum{0};
  std::atomic<int> dones{0};
  Event all_done;
  int64_t expected = 0;
  for (int t = 0; t < kThreads; ++t) {
    for (int64_t job = 0; job < kJobs; ++job) {
      const int64_t n = 1 + (job * 7 + t) % 13;
      expected += 2 * n * (n - 1) / 2;
    }
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t job = 0; job < kJobs; ++job) {
        const int64_t n = 1 + (job * 7 + t) % 13;
        pool.ParallelForAsync(
            n, [&](int64_t i) { sum += i; },
            [&](std::exception_ptr) {
              if (++dones == kThreads * kJobs) all_done.Set();
            });
        pool.ParallelFor(n, [&](int64_t i) { sum += i; });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  all_done.Wait();
  CHECK_EQ(sum.load(), expected);
}

TEST(DestructionFinishesTheQueue) {
  for (int threads : {1, 3}) {
    std::atomic<int> tasks{0}, dones{0}, later{0};
    {
      ThreadPool pool(threads);
      auto leave = std::make_shared<Event>();
      Occupy(&pool, leave);
      for (int job = 0; job < 100; ++job) {
        pool.ParallelForAsync(
            3, [&](int64_t) { ++tasks; },
            [&](std::exception_ptr) {
              ++dones;
              // A callback may start more work even while the pool is being destroyed.
              pool.ParallelForAsync(2, [&](int64_t) { ++later; }, [](std::exception_ptr) {});
            });
      }
      leave->Set();
    }
    CHECK_EQ(tasks.load(), 300);
    CHECK_EQ(dones.load(), 100);
    CHECK_EQ(later.load(), 200);
  }
}

TEST(LastReferenceDroppedByDone) {
  for (int threads : {1, 2, 4}) {
    for (const bool by_hand : {true, false}) {  // in the callback's body, or as the callback itself is destroyed
      auto pool = std::make_shared<ThreadPool>(threads);
      auto leave = std::make_shared<Event>(), queued_over = std::make_shared<Event>();
      auto queued = std::make_shared<std::atomic<int>>(0);
      Occupy(pool.get(), leave);
      ThreadPool* raw = pool.get();
      raw->ParallelForAsync(
          3, [](int64_t) {},
          [pool, by_hand](std::exception_ptr) mutable {
            if (by_hand) pool.reset();
          });
      // Still in the queue when the pool is destroyed.
      raw->ParallelForAsync(
          20, [queued](int64_t) { ++*queued; }, [queued_over](std::exception_ptr) { queued_over->Set(); });
      pool.reset();
      leave->Set();
      queued_over->Wait();
      CHECK_EQ(queued->load(), 20);
    }
  }
}

TEST(LastReferenceDroppedBeforeTheCallReturns) {
  // Also when the job is over before ParallelForAsync is: then it must not touch the pool any more.
  for (int run = 0; run < 200; ++run) {
    auto pool = std::make_shared<ThreadPool>(1 + run % 2);
    auto over = std::make_shared<Event>();
    ThreadPool* raw = pool.get();
    raw->ParallelForAsync(
        1 + run % 3, [](int64_t) {},
        [pool = std::move(pool), over](std::exception_ptr) mutable {
          pool.reset();
          over->Set();
        });
    over->Wait();
  }
}

TEST(LastReferenceDroppedByATask) {
  for (int threads : {1, 3}) {
    auto pool = std::make_shared<ThreadPool>(threads);
    auto leave = std::make_shared<Event>(), over = std::make_shared<Event>();
    Occupy(pool.get(), leave);
    ThreadPool* raw = pool.get();
    raw->ParallelForAsync(4, [pool](int64_t) {}, [over](std::exception_ptr) { over->Set(); });
    pool.reset();
    leave->Set();
    over->Wait();
  }
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
  SetProcessThreads(3);  // nothing to change: the pool that others hold stays the process's
  CHECK(ProcessPool() == three);
  SetProcessThreads(1);
  CHECK_EQ(ProcessPool()->threads(), 1);
  CHECK_THROWS(SetProcessThreads(-1), "threads is -1");
  CHECK_EQ(ProcessPool()->threads(), 1);
  std::atomic<int> tasks{0};
  three->ParallelFor(9, [&](int64_t) { ++tasks; });  // who holds the old pool keeps it
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

#if defined(__SSE2__)
TEST(WorkersComputeDenormalsWhoeverMakesThePool) {
  constexpr unsigned int kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  const unsigned int mine = _mm_getcsr();
  volatile float smallest = FLT_MIN, half = 0.5f, many = 1024;
  const float denormal = smallest * half;
  CHECK(denormal > 0);
  volatile float input = denormal;
  _mm_setcsr(mine | kFlushToZero | kDenormalsAreZero);
  ThreadPool pool(2);
  volatile float flushed_result = smallest * half, flushed_input = input * many;
  _mm_setcsr(mine);
  CHECK(flushed_result == 0);  // that is, the maker did flush
  CHECK(flushed_input == 0);
  std::vector<float> results(8), inputs(8);
  std::vector<double> doubles(8);
  volatile double smallest_double = DBL_MIN, half_double = 0.5;
  pool.ParallelFor(8, [&](int64_t i) {
    results[i] = smallest * half;
    inputs[i] = input * many;
    doubles[i] = smallest_double * half_double;
  });
  for (float result : results) CHECK_EQ(result, denormal);
  for (float result : inputs) CHECK_EQ(result, FLT_MIN * 512);
  for (double result : doubles) CHECK_EQ(result, DBL_MIN / 2);
}
#endif
