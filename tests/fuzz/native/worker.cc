// A worker of the family gymnasium that sends scripted answers to any requests: worker SCRIPT PIECE END.
//
// SCRIPT is a file of answers, each its length as uint16 and what is sent after the next request, in pieces of PIECE
// bytes. After the last one it exits (END is "exit"), dies by a signal ("die"), or sends nothing more ("wait").
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSocket = 0;

// n bytes from the other side; false where it sends no more.
bool Hear(void* to, size_t n) {
  for (size_t have = 0; have < n;) {
    const ssize_t got = recv(kSocket, static_cast<char*>(to) + have, n - have, 0);
    if (got <= 0) return false;
    have += static_cast<size_t>(got);
  }
  return true;
}

bool HearRequest() {
  static char request[1 << 16];
  uint32_t length = 0;
  return Hear(&length, sizeof(length)) && length <= sizeof(request) && Hear(request, length);
}

bool Say(const char* bytes, size_t n, size_t piece) {
  for (size_t said = 0; said < n;) {
    const ssize_t sent = send(kSocket, bytes + said, std::min(piece, n - said), MSG_NOSIGNAL);
    if (sent < 0) return false;
    said += static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::FILE* script = std::fopen(argv[1], "rb");
  if (script == nullptr) return 2;
  const size_t piece = std::strtoul(argv[2], nullptr, 10);
  static char answer[1 << 16];
  for (uint16_t length; std::fread(&length, sizeof(length), 1, script) == 1;) {
    const size_t n = std::fread(answer, 1, length, script);
    if (!HearRequest() || !Say(answer, n, piece)) return 0;
  }
  if (std::strcmp(argv[3], "die") == 0) raise(SIGKILL);
  if (std::strcmp(argv[3], "wait") != 0) return 0;
  pollfd closed = {kSocket, POLLRDHUP, 0};
  while (poll(&closed, 1, -1) < 0) {
  }
  return 0;
}
