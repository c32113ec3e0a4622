// Child process that does not outlive this process and is reaped as soon as it ends.
#ifndef NEUROEVO_ENVS_GYMNASIUM_PROCESS_H_
#define NEUROEVO_ENVS_GYMNASIUM_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace neuroevo {

// A dedicated thread starts the process and waits for its end. Linux signals a child when the thread that started it
// ends (PR_SET_PDEATHSIG, which the worker sets), so that thread must live as long as the child.
class ChildProcess {
 public:
  // command: program and arguments. input: file descriptor of its standard input; its standard output is redirected to
  // standard error. SIGINT is blocked, so that Ctrl-C only reaches this process. on_end: called by the waiting thread
  // once the process has ended; must not throw. Throws if the process cannot be started.
  ChildProcess(const std::vector<std::string>& command, int input, std::function<void()> on_end = [] {});
  ~ChildProcess();  // kills the process if it has not ended
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  bool mine() const;  // false in a fork of the process that started it
  void Kill();
  // Wait for the process to end, until `limit`; return whether it has ended.
  bool AwaitEnd(std::chrono::steady_clock::time_point limit) noexcept;
  std::string HowItEnded();  // "" if it has not ended

 private:
  // Body of the thread. arguments: only accessed until the process has started.
  void Keep(char* const* arguments, int input, const std::function<void()>& on_end) noexcept;

  const pid_t parent_;
  std::mutex mutex_;
  std::condition_variable changed_;
  pid_t id_ = 0;
  int error_ = 0;         // error number of the start, or 0
  bool started_ = false;  // started or failed to start
  bool ended_ = false;    // ended and reaped
  int status_ = 0;        // exit status from waitpid()
  std::thread keeper_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_PROCESS_H_
