// A process that runs Python environments, as seen from this one: it is asked, it answers.
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

// What the workers of a pool share.
struct GymnasiumSettings {
  std::vector<std::string> command;  // program and arguments of a worker
  std::string id, keywords;          // of the environment, as the worker takes them
  std::string behavior;              // the keys of its info that are the behavior, one a line
  double timeout;                    // seconds for an answer
  std::string description;           // the first worker's message about its environment, which all must send
};

// A pair of connected sockets, the second of which is for a child process.
class SocketPair {
 public:
  SocketPair();
  ~SocketPair();
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;

  int ours() const { return ours_; }
  int theirs() const { return theirs_; }
  void CloseTheirs();
  // Ends what waits for the other side or will, once what has arrived is read.
  void Shutdown() const;
  void SetTimeout(double seconds) const;  // of calls on ours

 private:
  int ours_ = -1, theirs_ = -1;
};

// Used by one thread after another; those that come meanwhile wait. Throws what its environments raised, after which it
// goes on, and why there is no answer (it died, or took too long and was killed), after which every call throws that.
// In a fork of the process that started it every call throws: the answers are the other's.
class GymnasiumWorker {
 public:
  // Starts the process, without waiting for it to be ready. settings: must outlive the worker.
  GymnasiumWorker(const GymnasiumSettings& settings, int64_t index);
  ~GymnasiumWorker();
  GymnasiumWorker(const GymnasiumWorker&) = delete;
  GymnasiumWorker& operator=(const GymnasiumWorker&) = delete;

  // What is thrown where it had failed before, at what somebody else has asked.
  class FailedBefore : public Error {
   public:
    using Error::Error;
  };

  // Waits until it is ready; what it says about its environment, of which it has made one.
  std::string Description();

  // Sends a request for a slot and has the answer read. doing: what the request is called in messages.
  void Call(int64_t slot, const char* doing, const std::string& request,
            const std::function<void(MessageReader*)>& read);

  // Tells it to end, without waiting for that. One that takes too long for it is killed by the destructor.
  void Leave();

  // Kills it, and if it has worked on one request for longer than that. It is then not to be replaced.
  void GiveUp();
  void EndIfStuck(std::chrono::milliseconds time);

  // Whether another process may do what this one has failed at: not where nobody wants that any more.
  bool replaceable() const { return process_.mine() && !given_up_; }

 private:
  class Turn;
  void Introduce(Error::Kind kind);
  bool Send(const std::string& message) const;
  // Runs body(), which asks and receives. Where memory runs out in the middle of that, what is left of an answer would
  // be taken for the next one: the worker is then broken.
  template <class Body>
  void Exchange(Body body);
  std::string_view Receive();  // what follows the length; valid until the next call
  std::string Message(const std::string& why) const;
  [[noreturn]] void Throw(Error::Kind kind, const std::string& why) const;
  [[noreturn]] void Break(const std::string& why, Error::Kind kind = Error::Kind::kEnvironment);
  [[noreturn]] void BreakSilent();

  const GymnasiumSettings& settings_;
  const int64_t index_;
  SocketPair socket_;
  // Its end shuts the socket down, whose other side a child of its own may have, too, and live on.
  ChildProcess process_;
  std::chrono::steady_clock::time_point left_at_{};  // when it was asked to end
  std::atomic<int64_t> busy_since_{0};               // by the steady clock; 0: it is not at work
  std::atomic<bool> given_up_{false};

  std::mutex mutex_;        // of what follows
  const char* doing_ = "";  // what is asked for, and for which slot; -1: for none
  int64_t slot_ = -1;
  std::string description_;   // empty: it has not been introduced
  std::string broken_;        // why every call throws
  std::vector<char> buffer_;  // of the message received last
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_WORKER_H_
