#include "envs/gymnasium/process.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/error.h"

namespace neuroevo {
namespace {

// Start the process and return an error number, or 0. posix_spawn, unlike fork, is safe in a process with threads.
int Spawn(char* const* arguments, int input, pid_t* id) noexcept {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int error = posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);  // fails if memory runs out
  if (error == 0) error = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  if (error == 0) error = posix_spawn(id, arguments[0], &files, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, int input, std::function<void()> on_end)
    : parent_(getpid()) {
  if (command.empty()) ThrowInvalid("the command of a gymnasium worker is empty, expected a program and its arguments");
  std::vector<char*> arguments;  // read until it has started
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  keeper_ =
      std::thread([this, &arguments, input, on_end = std::move(on_end)] { Keep(arguments.data(), input, on_end); });
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return started_; });
  if (error_ == 0) return;
  lock.unlock();
  keeper_.join();
  if (error_ == ENOMEM) throw std::bad_alloc();
  throw Error(Error::Kind::kInternal, Concat("cannot start '", command[0], "': ", std::strerror(error_)));
}

ChildProcess::~ChildProcess() {
  if (!mine()) {
    keeper_.detach();  // the keeper thread does not exist in a fork
    return;
  }
  Kill();
  keeper_.join();
}

bool ChildProcess::mine() const { return getpid() == parent_; }

void ChildProcess::Keep(char* const* arguments, int input, const std::function<void()>& on_end) noexcept {
  pthread_setname_np(pthread_self(), "neuroevo keeper");
  pid_t id = 0;
  const int error = Spawn(arguments, input, &id);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    id_ = id;
    error_ = error;
    started_ = true;
  }
  changed_.notify_all();
  if (error != 0) return;
  siginfo_t info;
  // The process is reaped under the lock, so that Kill() cannot hit another process that reuses its id.
  while (waitid(P_PID, id, &info, WEXITED | WNOWAIT) == -1 && errno == EINTR) {
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    while (waitpid(id, &status_, 0) == -1 && errno == EINTR) {
    }
    ended_ = true;
    changed_.notify_all();
  }
  on_end();
}

void ChildProcess::Kill() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!ended_) kill(id_, SIGKILL);
}

bool ChildProcess::AwaitEnd(std::chrono::steady_clock::time_point limit) noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, limit, [&] { return ended_; });
}

std::string ChildProcess::HowItEnded() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!ended_) return "";
  if (WIFSIGNALED(status_)) return Concat("was killed by signal ", WTERMSIG(status_));
  return Concat("ended with exit code ", WEXITSTATUS(status_));
}

}  // namespace neuroevo
