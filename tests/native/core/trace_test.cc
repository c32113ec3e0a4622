// Traces: all recorded spans are read, even with concurrent starts and stops; nothing is recorded while tracing is off.
#include "core/trace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "core/thread_pool.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

std::vector<trace::Span> Named(const trace::Recorded& recorded, const std::string& name, trace::Kind kind) {
  std::vector<trace::Span> found;
  for (const trace::Span& span : recorded.spans) {
    if (name == span.name && kind == span.kind) found.push_back(span);
  }
  return found;
}

}  // namespace

TEST(NothingIsRecordedWhileNobodyRecords) {
  trace::Start(10);
  trace::Stop();
  {
    const trace::Scope scope("off", 1);
  }
  trace::Add("off", 1, 2, 3, nullptr, trace::Kind::kTask);
  CHECK(trace::Read().spans.empty());
  CHECK_EQ(std::string(trace::Scope::Current()), "");
  CHECK_THROWS(trace::Start(0), "spans per thread is 0, expected 1 to 16777216");
  CHECK_THROWS(trace::Start(int64_t{1} << 62), "spans per thread is 4611686018427387904, expected 1 to");
}

TEST(ScopesAreNestedAndKeepWhatTheyWereGiven) {
  int place = 0;
  trace::Start(10);
  {
    const trace::Scope outer("outer", 7, &place);
    CHECK_EQ(std::string(trace::Scope::Current()), "outer");
    {
      const trace::Scope inner("inner", -1);
      CHECK_EQ(std::string(trace::Scope::Current()), "inner");
    }
    CHECK_EQ(std::string(trace::Scope::Current()), "outer");
  }
  trace::Stop();
  const trace::Recorded recorded = trace::Read();
  CHECK_EQ(recorded.spans.size(), 2u);
  const trace::Span inner = recorded.spans[0], outer = recorded.spans[1];
  CHECK_EQ(std::string(inner.name), "inner");
  CHECK(outer.begin_ns <= inner.begin_ns && inner.begin_ns <= inner.end_ns && inner.end_ns <= outer.end_ns);
  CHECK_EQ(outer.argument, 7);
  CHECK(outer.link == &place && inner.link == nullptr);
}

TEST(TasksAreNamedAfterTheCallThatBroughtThem) {
  ThreadPool pool(3);
  trace::Start(1000);
  {
    const trace::Scope scope("work", 0);
    pool.ParallelFor(100, [](int64_t) { std::this_thread::sleep_for(std::chrono::microseconds(50)); });
  }
  trace::Stop();
  const trace::Recorded recorded = trace::Read();
  const auto calls = Named(recorded, "work", trace::Kind::kCall), tasks = Named(recorded, "work", trace::Kind::kTask);
  CHECK_EQ(calls.size(), 1u);
  CHECK_EQ(tasks.size(), 100u);
  std::vector<bool> seen(100);
  double seconds = 0;
  for (const trace::Span& task : tasks) {
    seen[task.argument] = true;
    seconds += static_cast<double>(task.end_ns - task.begin_ns) * 1e-9;
    CHECK(task.end_ns - task.begin_ns >= 50000);
    CHECK(calls[0].begin_ns <= task.begin_ns && task.end_ns <= calls[0].end_ns);
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](bool each) { return each; }));
  CHECK(std::abs(seconds - pool.BusySeconds()) < 1e-9 * 100);
}

TEST(WhatFindsNoRoomIsCounted) {
  trace::Start(3);
  for (int i = 0; i < 10; ++i) trace::Add("some", i, i + 1, i, nullptr, trace::Kind::kDevice);
  std::thread other([] { trace::Add("other", 0, 1, 0, nullptr, trace::Kind::kTask); });
  other.join();
  trace::Stop();
  const trace::Recorded recorded = trace::Read();
  CHECK_EQ(recorded.spans.size(), 4u);
  CHECK_EQ(recorded.dropped, 7);
  CHECK_EQ(recorded.spans[2].argument, 2);
  CHECK_EQ(recorded.spans[3].thread, 1);
  trace::Start(3);  // drops them
  trace::Stop();
  CHECK(trace::Read().spans.empty());
  CHECK_EQ(trace::Read().dropped, 0);
}

TEST(RecordingsStartAndEndWhileThreadsAreAtWork) {
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&over, t] {
      while (!over) const trace::Scope scope("busy", t);
    });
  }
  size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    trace::Start(50);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (i % 2 == 0) trace::Stop();
    const trace::Recorded recorded = trace::Read();
    most = std::max(most, recorded.spans.size());
    for (const trace::Span& span : recorded.spans) {
      CHECK_EQ(std::string(span.name), "busy");
      CHECK(span.argument >= 0 && span.argument < 4 && span.begin_ns <= span.end_ns);
    }
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  trace::Stop();
  CHECK(most >= 50);
}
