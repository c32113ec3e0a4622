#include "envs/gymnasium/worker.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <new>

#include "core/error.h"

namespace neuroevo {
namespace {

constexpr std::chrono::seconds kGoodbye{2};  // time to close its environments before it is killed
constexpr std::chrono::seconds kLast{1};     // wait for the process's exit after its end of the socket was closed
constexpr double kStart = 300;               // minimum timeout of the start, in seconds
constexpr size_t kBufferBytes = 1 << 16;
constexpr char kNoMemory[] = "no memory left";  // fits a string's inline buffer, so that nothing is allocated

using Clock = std::chrono::steady_clock;
int64_t Now() { return Clock::now().time_since_epoch().count(); }

}  // namespace

SocketPair::SocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(Error::Kind::kInternal, Concat("cannot create a gymnasium worker's socket: ", std::strerror(errno)));
  }
  ours_ = ends[0];
  theirs_ = ends[1];
}

SocketPair::~SocketPair() {
  CloseTheirs();
  close(ours_);
}

void SocketPair::CloseTheirs() {
  if (theirs_ >= 0) close(theirs_);
  theirs_ = -1;
}

void SocketPair::Shutdown() const { shutdown(ours_, SHUT_RDWR); }

void SocketPair::SetTimeout(double seconds) const {
  double whole;
  timeval limit{};
  limit.tv_usec = static_cast<suseconds_t>(1e6 * std::modf(seconds, &whole));
  limit.tv_sec = static_cast<time_t>(whole);
  for (int direction : {SO_RCVTIMEO, SO_SNDTIMEO}) setsockopt(ours_, SOL_SOCKET, direction, &limit, sizeof(limit));
}

// Scope of one thread's exclusive use of the worker, from the request to the reply.
class GymnasiumWorker::Turn {
 public:
  Turn(GymnasiumWorker* worker, const char* doing, int64_t slot) : worker_(worker), lock_(worker->mutex_) {
    worker_->doing_ = doing;
    worker_->slot_ = slot;
    if (!worker_->process_.mine()) {
      worker_->Throw(Error::Kind::kEnvironment, "the worker belongs to the process that this one was forked from");
    }
    if (!worker_->broken_.empty()) {
      throw FailedBefore(Error::Kind::kEnvironment, worker_->Message(worker_->broken_));
    }
    worker_->busy_since_ = Now();
  }
  ~Turn() { worker_->busy_since_ = 0; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  GymnasiumWorker* worker_;
  std::lock_guard<std::mutex> lock_;
};

GymnasiumWorker::GymnasiumWorker(const GymnasiumSettings& settings, int64_t index)
    : settings_(settings),
      index_(index),
      process_(settings.command, socket_.theirs(), [this] { socket_.Shutdown(); }),
      buffer_(kBufferBytes) {
  socket_.CloseTheirs();
  socket_.SetTimeout(std::max(kStart, settings.timeout));
  MessageWriter hello(GymnasiumMessage::kHello);
  hello.Number(kGymnasiumVersion).Number(static_cast<uint64_t>(getpid()));
  hello.Text(settings.id).Text(settings.keywords).Text(settings.behavior);
  Send(hello.Finish());  // a worker that has already died is detected while waiting for its reply
}

GymnasiumWorker::~GymnasiumWorker() {
  Leave();
  if (process_.mine()) process_.AwaitEnd(left_at_ + kGoodbye);
}

std::string GymnasiumWorker::Description() {
  const Turn turn(this, "start", -1);
  // The first caller's options may be invalid, which is the caller's error.
  if (description_.empty()) Exchange([&] { Introduce(Error::Kind::kInvalidArgument); });
  return description_;
}

void GymnasiumWorker::Call(int64_t slot, const char* doing, const std::string& request,
                           const std::function<void(MessageReader*)>& read) {
  const Turn turn(this, doing, slot);
  std::string_view received;
  Exchange([&] {
    if (description_.empty()) Introduce(Error::Kind::kEnvironment);
    if (!Send(request)) BreakSilent();
    received = Receive();
  });
  MessageReader answer(received);
  if (answer.kind() == GymnasiumMessage::kError) Throw(Error::Kind::kEnvironment, ReadGymnasiumError(&answer));
  try {
    read(&answer);
  } catch (const Error& error) {
    Break(error.what());
  }
}

void GymnasiumWorker::Leave() {
  if (!process_.mine() || left_at_ != Clock::time_point()) return;
  left_at_ = Clock::now();
  socket_.Shutdown();
}

void GymnasiumWorker::GiveUp() {
  if (!process_.mine()) return;
  given_up_ = true;
  process_.Kill();
}

void GymnasiumWorker::EndIfStuck(std::chrono::milliseconds time) {
  const int64_t since = busy_since_;
  if (since != 0 && Now() - since > std::chrono::nanoseconds(time).count()) GiveUp();
}

void GymnasiumWorker::Introduce(Error::Kind kind) {
  const std::string_view body = Receive();
  MessageReader answer(body);
  if (answer.kind() == GymnasiumMessage::kError) Break(ReadGymnasiumError(&answer), kind);
  if (!settings_.description.empty() && body != settings_.description) {
    Break("its environment's spaces differ from the first worker's");
  }
  description_ = body;
  socket_.SetTimeout(settings_.timeout);
}

template <class Body>
void GymnasiumWorker::Exchange(Body body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    process_.Kill();
    if (broken_.empty()) broken_ = kNoMemory;
    throw;
  }
}

bool GymnasiumWorker::Send(const std::string& message) const {
  size_t sent = 0;
  while (sent < message.size()) {
    const ssize_t n = send(socket_.ours(), message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

std::string_view GymnasiumWorker::Receive() {
  uint32_t length = 0;
  size_t have = 0, expected = sizeof(length);
  while (have < expected) {
    errno = 0;
    const ssize_t n = recv(socket_.ours(), buffer_.data() + have, buffer_.size() - have, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) BreakSilent();
    have += static_cast<size_t>(n);
    if (have < sizeof(length)) continue;
    std::memcpy(&length, buffer_.data(), sizeof(length));
    if (length < 1 || length > kMaxMessageBytes) Break(Concat("it sent a message of ", length, " bytes"));
    expected = sizeof(length) + length;
    // Grow with the received bytes, not the announced length, plus one byte to detect a message that is too long.
    if (have == buffer_.size()) buffer_.resize(std::min(expected + 1, 2 * have));
  }
  if (have > expected) Break("it sent more than one answer");
  return {buffer_.data() + sizeof(length), length};
}

std::string GymnasiumWorker::Message(const std::string& why) const {
  const std::string slot = slot_ < 0 ? "" : Concat(" of slot ", slot_);
  return Concat("gymnasium environment '", settings_.id, "', ", doing_, slot, " (worker ", index_, ", process ",
                process_.id(), "): ", why);
}

void GymnasiumWorker::Throw(Error::Kind kind, const std::string& why) const { throw Error(kind, Message(why)); }

void GymnasiumWorker::Break(const std::string& why, Error::Kind kind) {
  process_.Kill();
  broken_ = kNoMemory;  // remains if memory runs out for the reason
  broken_ = why;
  Throw(kind, why);
}

// errno must be that of the failed receive call.
void GymnasiumWorker::BreakSilent() {
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    Break(Concat("no answer within ", description_.empty() ? std::max(kStart, settings_.timeout) : settings_.timeout,
                 " s"));
  }
  process_.AwaitEnd(Clock::now() + kLast);
  const std::string end = process_.HowItEnded();
  Break(end.empty() ? "the worker closed its connection" : Concat("the worker ", end));
}

}  // namespace neuroevo
