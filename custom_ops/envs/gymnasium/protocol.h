// The messages between this process and a worker that runs Python environments (neuroevo/envs/gymnasium/worker.py).
//
// A message is its length as uint32, one byte that says its kind, and the fields of that kind; the length counts what
// follows it. Numbers are little-endian, a text is its length as uint32 and UTF-8. The worker answers every message
// with one of its own:
//   hello   version uint32, process id of the caller uint64, environment's id text, keywords text (JSON), the keys of
//           `info` that are the behavior, one a line, text
//           -> spec: version uint32, observation dtype uint8 (0 uint8, 1 float32, 2 float64), rank uint32, dimensions
//              int64[rank], discrete uint8, number of actions int64; unless discrete, lows and highs float32[actions]
//              each; steps after which the environment itself ends an episode int64 (0: it has no such limit); height
//              and width of its screen uint32 (0: it cannot be rendered)
//   reset   slot uint32, seed uint64 -> result: reward float64 (0), ended uint8 (0 no, 1 terminated, 2 truncated,
//           3 both), behavior float64[keys], NaN where a reset has no such key, observation
//   step    slot uint32, action int32 or float32[actions] -> result
//   render  slot uint32 -> screen: red, green, blue, uint8[height, width, 3]
// or with an error instead: the exception's last line and its traceback, two texts.
#ifndef NEUROEVO_ENVS_GYMNASIUM_PROTOCOL_H_
#define NEUROEVO_ENVS_GYMNASIUM_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "envs/env.h"
#include "envs/episode_info.h"

namespace neuroevo {

constexpr uint32_t kGymnasiumVersion = 2;
constexpr size_t kMaxMessageBytes = size_t{1} << 30;

enum class GymnasiumMessage : uint8_t { kHello = 1, kReset, kStep, kRender, kSpec, kResult, kScreen, kError };

// Builds a message, ready to be sent.
class MessageWriter {
 public:
  explicit MessageWriter(GymnasiumMessage kind) : message_(sizeof(uint32_t), '\0') { Number(kind); }

  template <class T>
  MessageWriter& Number(T value) {
    return Bytes(&value, sizeof(value));
  }
  MessageWriter& Bytes(const void* bytes, size_t size) {
    message_.append(static_cast<const char*>(bytes), size);
    return *this;
  }
  MessageWriter& Text(const std::string& text) {
    return Number(static_cast<uint32_t>(text.size())).Bytes(text.data(), text.size());
  }
  std::string Finish();

 private:
  std::string message_;
};

// Reads the fields of a message, which it does not own. Throws where the message ends too early or too late.
class MessageReader {
 public:
  // body: what follows the message's length.
  explicit MessageReader(std::string_view body) : body_(body), kind_(Number<GymnasiumMessage>("kind")) {}

  GymnasiumMessage kind() const { return kind_; }

  template <class T>
  T Number(const char* what) {
    T value;
    std::memcpy(&value, Bytes(what, sizeof(value)), sizeof(value));
    return value;
  }
  const char* Bytes(const char* what, size_t size);
  std::string Text(const char* what);
  void Finish() const;

 private:
  std::string_view body_;  // what has not been read
  GymnasiumMessage kind_;
};

// An environment as its worker describes it.
struct GymnasiumSpec {
  EnvSpec spec;
  int64_t max_steps = 0;  // after which the environment itself ends an episode; 0: it does not
};
GymnasiumSpec ReadGymnasiumSpec(MessageReader* message);

// The exception's last line and its traceback, if there is one.
std::string ReadGymnasiumError(MessageReader* message);

struct GymnasiumResult {
  double reward = 0;
  EpisodeInfo::End end;
};
// Writes the behavior, as many numbers as it has, and the observation, `bytes` long.
GymnasiumResult ReadGymnasiumResult(MessageReader* message, std::vector<double>* behavior, int64_t bytes,
                                    char* observation);

// Writes the screen, `bytes` long.
void ReadGymnasiumScreen(MessageReader* message, int64_t bytes, uint8_t* rgb);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_PROTOCOL_H_
