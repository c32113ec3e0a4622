// A child process that does not outlive this one, and that is reaped as soon as it ends.
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

// A thread of its own starts the process and waits for its end. Linux tells a child of the death of the thread that
// started it (PR_SET_PDEATHSIG, which the worker asks for), and this thread lives as long as it should.
class ChildProcess {
 public:
  // command: program and arguments. input: becomes its standard input; standard output goes to standard error, where
  // what it prints does no harm. SIGINT is blocked: a Ctrl-C is for this process. on_end: called once it has ended, by
  // the thread that waits for that, and throws nothing. Throws if it cannot be started.
  ChildProcess(const std::vector<std::string>& command, int input, std::function<void()> on_end = [] {});
  ~ChildProcess();  // kills it if it has not ended
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  bool mine() const;  // false in a fork of the process that started it
  void Kill();
  // Waits for its end, up to then; whether it has ended.
  bool AwaitEnd(std::chrono::steady_clock::time_point limit) noexcept;
  std::string HowItEnded();  // "" if it has not

 private:
  // arguments: read until it has started.
  void Keep(char* const* arguments, int input, const std::function<void()>& on_end) noexcept;

  const pid_t parent_;
  std::mutex mutex_;
  std::condition_variable changed_;
  pid_t id_ = 0;
  int error_ = 0;         // of starting it
  bool started_ = false;  // or failed
  bool ended_ = false;    // and reaped
  int status_ = 0;        // as waitpid() has it
  std::thread keeper_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_PROCESS_H_
