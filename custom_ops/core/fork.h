// Support for fork() in a process with threads: the child has the parent's memory but only the thread that called
// fork(), and locks held by other threads are never released.
#ifndef NEUROEVO_CORE_FORK_H_
#define NEUROEVO_CORE_FORK_H_

#include <cstdint>
#include <mutex>

namespace neuroevo {

// Return the number of forks between the process that loaded this library and the current one. An object created at a
// different count belongs to a parent process: its threads do not exist here, and its locks may never be released.
int64_t Forks();

// Mutex of a process-wide structure, such as a registry. fork() waits until the mutex is free, so that in the child the
// mutex is unlocked and the structure consistent. It must live until the process ends, and a thread may hold only one
// ProcessMutex.
class ProcessMutex {
 public:
  ProcessMutex();
  ProcessMutex(const ProcessMutex&) = delete;
  ProcessMutex& operator=(const ProcessMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};
using ProcessLock = std::lock_guard<ProcessMutex>;

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_FORK_H_
