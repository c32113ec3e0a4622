// Protocol between this process and a worker that runs Python environments (neuroevo/envs/gymnasium/worker.py).
//
// A message consists of its length as uint32, not counting the length itself, one byte for its kind, and the fields of
// that kind. Numbers are little-endian; a text is its length as uint32, then UTF-8. The worker replies to every message
// with one message:
//   hello   version uint32, process id of the caller uint64, environment's id text, keywords text (JSON), the keys of
//           `info` that form the behavior, one per line, text
//           -> spec: version uint32, observation dtype uint8 (0 uint8, 1 float32, 2 float64), rank uint32, dimensions
//              int64[rank], discrete uint8, number of actions int64; unless discrete, lows and highs float32[actions]
//              each; the environment's step limit int64 (0: no limit); height and width of its screen uint32 (0:
//              cannot be rendered)
//   reset   slot uint32, seed uint64 -> result: reward float64 (0), ended uint8 (0 no, 1 terminated, 2 truncated,
//           3 both), behavior float64[keys], NaN for keys missing after a reset, observation
//   step    slot uint32, action int32 or float32[actions] -> result
//   render  slot uint32 -> screen: red, green, blue, uint8[height, width, 3]
// or with an error: the exception's last line and its traceback, two texts.
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

// Builder of a message.
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

// Reader of the fields of a message, which it does not own. Throws if the message is too short or too long.
class MessageReader {
 public:
  // body: the message without its length.
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
  std::string_view body_;  // the unread part
  GymnasiumMessage kind_;
};

// Description of an environment, reported by its worker.
struct GymnasiumSpec {
  EnvSpec spec;
  int64_t max_steps = 0;  // the environment's step limit; 0: no limit
};
GymnasiumSpec ReadGymnasiumSpec(MessageReader* message);

// Return the exception's last line and, if not empty, its traceback.
std::string ReadGymnasiumError(MessageReader* message);

struct GymnasiumResult {
  double reward = 0;
  EpisodeInfo::End end;
};
// Read a result; behavior: has one entry per number; the observation is `bytes` long.
GymnasiumResult ReadGymnasiumResult(MessageReader* message, std::vector<double>* behavior, int64_t bytes,
                                    char* observation);

// Read the screen, `bytes` long.
void ReadGymnasiumScreen(MessageReader* message, int64_t bytes, uint8_t* rgb);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_PROTOCOL_H_
