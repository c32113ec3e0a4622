// Client of a worker process that runs Python environments: sends requests and receives replies.
#ifndef NEUROEVO_ENVS_GYMNASIUM_WORKER_H_
#define NEUROEVO_ENVS_GYMNASIUM_WORKER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "envs/gymnasium/process.h"
#include "envs/gymnasium/protocol.h"

namespace neuroevo {

// Settings shared by the workers of a pool.
struct GymnasiumSettings {
  std::vector<std::string> command;  // program and arguments of a worker
  std::string id, keywords;          // of the environment, in the worker's format
  std::string behavior;              // the keys of its info that form the behavior, one per line
  double timeout;                    // seconds within which a worker must reply
  std::string description;           // the first worker's environment description, which all workers must match
};

// Pair of connected sockets, the second of which is for a child process.
class SocketPair {
 public:
  SocketPair();
  ~SocketPair();
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;

  int ours() const { return ours_; }
  int theirs() const { return theirs_; }
  void CloseTheirs();
  // Make current and later reads return the end of the stream after the received data.
  void Shutdown() const;
  void SetTimeout(double seconds) const;  // timeout of calls on our socket

 private:
  int ours_ = -1, theirs_ = -1;
};

// Client of one worker. Calls of several threads are serialized. A call throws an exception that the environment
// raised, after which the worker remains usable, or the reason for a missing reply (the worker died, or timed out and
// was killed), which all later calls then throw. In a fork of the process that started the worker every call throws.
class GymnasiumWorker {
 public:
  // Start the process without waiting for it to be ready. settings: must outlive the worker.
  GymnasiumWorker(const GymnasiumSettings& settings, int64_t index);
  ~GymnasiumWorker();
  GymnasiumWorker(const GymnasiumWorker&) = delete;
  GymnasiumWorker& operator=(const GymnasiumWorker&) = delete;

  // Error of a call on a worker that failed earlier, in another caller's request.
  class FailedBefore : public Error {
   public:
    using Error::Error;
  };

  // Wait until the worker is ready and return its description of the environment, which it has created once.
  std::string Description();

  // Send a request for a slot and pass the reply to `read`. doing: name of the request in messages.
  void Call(int64_t slot, const char* doing, const std::string& request,
            const std::function<void(MessageReader*)>& read);

  // Ask the worker to exit, without waiting. The destructor kills a worker that takes too long.
  void Leave();

  // Kill the worker for good; EndIfStuck does so if it has been busy with one request for longer than `time`.
  void GiveUp();
  void EndIfStuck(std::chrono::milliseconds time);

  // Whether another process may take over after a failure: not after GiveUp() and not in a fork.
  bool replaceable() const { return process_.mine() && !given_up_; }

 private:
  class Turn;
  void Introduce(Error::Kind kind);
  bool Send(const std::string& message) const;
  // Run body(), which sends a request and receives the reply. If memory runs out in between, mark the worker as broken,
  // since the rest of the reply would be mistaken for the next one.
  template <class Body>
  void Exchange(Body body);
  std::string_view Receive();  // the message without its length; valid until the next call
  std::string Message(const std::string& why) const;
  [[noreturn]] void Throw(Error::Kind kind, const std::string& why) const;
  [[noreturn]] void Break(const std::string& why, Error::Kind kind = Error::Kind::kEnvironment);
  [[noreturn]] void BreakSilent();

  const GymnasiumSettings& settings_;
  const int64_t index_;
  SocketPair socket_;
  // The socket is shut down when the process ends, since a child of the process may survive and hold the other side.
  ChildProcess process_;
  std::chrono::steady_clock::time_point left_at_{};  // when the worker was asked to exit
  std::atomic<int64_t> busy_since_{0};               // steady clock time at the start of the request; 0: idle
  std::atomic<bool> given_up_{false};

  std::mutex mutex_;        // guards the members below
  const char* doing_ = "";  // name of the current request; slot_ is its slot, or -1
  int64_t slot_ = -1;
  std::string description_;   // empty: not received yet
  std::string broken_;        // if not empty, the reason that every call throws
  std::vector<char> buffer_;  // the last received message
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_WORKER_H_
