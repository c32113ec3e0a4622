#include "core/fork.h"

#include <pthread.h>

#include <atomic>
#include <vector>

namespace neuroevo {

namespace {

struct Locks {
  std::mutex mutex;
  std::vector<ProcessMutex*> all;
};

Locks& AllLocks() {
  static auto* locks = new Locks();  // never destroyed: a thread may fork while the process exits
  return *locks;
}

std::atomic<int64_t> forks{0};

void BeforeFork() {
  AllLocks().mutex.lock();
  for (ProcessMutex* each : AllLocks().all) each->lock();
}

void AfterFork() {
  for (ProcessMutex* each : AllLocks().all) each->unlock();
  AllLocks().mutex.unlock();
}

void AfterForkInChild() {
  ++forks;
  AfterFork();
}

const int handlers = pthread_atfork(BeforeFork, AfterFork, AfterForkInChild);

}  // namespace

int64_t Forks() { return forks.load(std::memory_order_relaxed); }

ProcessMutex::ProcessMutex() {
  (void)handlers;
  const std::lock_guard<std::mutex> lock(AllLocks().mutex);
  AllLocks().all.push_back(this);
}

}  // namespace neuroevo
