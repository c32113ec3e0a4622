// What fork() does to a process with threads: the child has the parent's memory, but of its threads only the one that
// called fork(), and locks that another thread held are never released.
#ifndef NEUROEVO_CORE_FORK_H_
#define NEUROEVO_CORE_FORK_H_

#include <cstdint>
#include <mutex>

namespace neuroevo {

// The number of forks between the process that loaded this library and the current one. An object made under another
// number belongs to a parent process: its threads do not exist here, and its locks may never be released.
int64_t Forks();

// The lock of a structure that a process has once, such as a registry. fork() waits until it is free, so that the child
// finds it unlocked and the structure complete. Must not be destroyed before the process ends, and no other one may be
// taken while it is held.
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
