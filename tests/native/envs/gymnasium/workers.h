// Workers of the Gymnasium family that are shell scripts, for tests: messages, and scripts that send and receive them.
#ifndef NEUROEVO_TESTS_NATIVE_ENVS_GYMNASIUM_WORKERS_H_
#define NEUROEVO_TESTS_NATIVE_ENVS_GYMNASIUM_WORKERS_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "core/thread_pool.h"
#include "envs/env_pool.h"
#include "envs/gymnasium/protocol.h"

namespace neuroevo {

inline std::string_view Body(const std::string& message) { return std::string_view(message).substr(sizeof(uint32_t)); }

// Observations uint8 [2, 3] and `actions` discrete actions, or float32 ones in [-1, 2].
inline std::string Description(bool discrete = true, int64_t actions = 4, uint32_t version = kGymnasiumVersion) {
  MessageWriter writer(GymnasiumMessage::kSpec);
  writer.Number(version).Number(uint8_t{0}).Number(uint32_t{2}).Number(int64_t{2}).Number(int64_t{3});
  writer.Number(static_cast<uint8_t>(discrete)).Number(actions);
  for (float bound : {-1.0f, 2.0f}) {
    for (int64_t a = 0; !discrete && a < actions; ++a) writer.Number(bound);
  }
  return writer.Number(int64_t{9}).Number(uint32_t{1}).Number(uint32_t{2}).Finish();
}

inline std::string Result(double reward, bool ended = false, const std::string& observation = "abcdef") {
  return MessageWriter(GymnasiumMessage::kResult)
      .Number(reward)
      .Number(static_cast<uint8_t>(ended))
      .Bytes(observation.data(), observation.size())
      .Finish();
}

inline std::string Screen() { return MessageWriter(GymnasiumMessage::kScreen).Bytes("ABCDEF", 6).Finish(); }

inline GymnasiumSpec ReadDescription(const std::string& message) {
  MessageReader reader(Body(message));
  return ReadGymnasiumSpec(&reader);
}

// Shell commands that send a message, or read this number of bytes.
inline std::string Say(const std::string& message) {
  std::string text = "printf '";
  for (const char c : message) {
    char octal[8];
    std::snprintf(octal, sizeof(octal), "\\%03o", static_cast<unsigned char>(c));
    text += octal;
  }
  return text + "' >&0; ";
}
inline std::string Hear(size_t bytes) { return "dd bs=1 count=" + std::to_string(bytes) + " >/dev/null 2>&1; "; }

inline constexpr size_t kHello = 4 + 1 + 4 + 8 + (4 + 3) + (4 + 2) + 4, kReset = 4 + 1 + 4 + 8, kStep = 4 + 1 + 4 + 4,
                        kRender = 4 + 1 + 4;

// A pool whose workers run a shell script.
inline std::unique_ptr<EnvPool> Pool(const std::string& script, int64_t slots = 1, const std::string& timeout = "60",
                                     const std::string& retries = "0", const std::string& behavior = "") {
  const EnvOptions options = {{"command", "/bin/sh\n-c\n" + script},
                              {"id", "Toy"},
                              {"behavior", behavior},
                              {"timeout", timeout},
                              {"workers", "2"},
                              {"retries", retries}};
  return std::make_unique<EnvPool>("gymnasium", options, slots, std::make_shared<ThreadPool>(2));
}

inline std::string Start() { return Hear(kHello) + Say(Description()); }

}  // namespace neuroevo

#endif  // NEUROEVO_TESTS_NATIVE_ENVS_GYMNASIUM_WORKERS_H_
