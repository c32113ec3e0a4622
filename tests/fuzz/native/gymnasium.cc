// Fuzzes what a worker process of the family gymnasium sends (envs/gymnasium/protocol.h). The input describes answers,
// among them well-formed ones; the readers of messages get each, and a pool of environments gets them from a worker
// that sends one after another, ends early or falls silent. Whatever comes, each call returns or throws an Error.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/thread_pool.h"
#include "envs/env_pool.h"
#include "envs/gymnasium/protocol.h"
#include "fuzz/native/file.h"
#include "fuzz/native/target.h"

namespace neuroevo::fuzz {
namespace {

constexpr size_t kMaxAnswers = 12;
constexpr int64_t kMaxBytes = 1 << 20;  // of an observation that is played, or of a screen

// Calls body; an Error is what may come of it.
template <class Body>
void Try(Body body) {
  try {
    body();
  } catch (const Error&) {
  }
}

std::string_view BodyOf(const std::string& message) {
  return std::string_view(message).substr(std::min(message.size(), sizeof(uint32_t)));
}

// What the last description says, as well-formed answers need.
struct Described {
  int64_t observation = 6, screen = 6;
};

std::string Description(Bytes* bytes, Described* described) {
  MessageWriter spec(GymnasiumMessage::kSpec);
  const uint8_t dtype = static_cast<uint8_t>(bytes->Below(3));
  const auto rank = static_cast<uint32_t>(1 + bytes->Below(3));
  spec.Number(kGymnasiumVersion).Number(dtype).Number(rank);
  described->observation = dtype == 0 ? 1 : 4 * dtype;
  for (uint32_t i = 0; i < rank; ++i) {
    const int64_t dimension = bytes->Chance(3) ? bytes->Take<int64_t>() : 1 + bytes->Below(4);
    spec.Number(dimension);
    described->observation = std::clamp<int64_t>(dimension, 0, 1024) * described->observation;
  }
  const bool discrete = bytes->Chance(50);
  const int64_t actions = bytes->Chance(3) ? bytes->Take<int64_t>() : 1 + bytes->Below(3);
  spec.Number(static_cast<uint8_t>(discrete)).Number(actions);
  for (int64_t i = 0; !discrete && i < 2 * std::clamp<int64_t>(actions, 0, 32); ++i) spec.Number(bytes->Take<float>());
  spec.Number(bytes->Chance(50) ? bytes->Take<int64_t>() : 0);
  const auto height = static_cast<uint32_t>(bytes->Below(4)), width = static_cast<uint32_t>(bytes->Below(4));
  described->screen = 3 * int64_t{height} * width;
  return spec.Number(height).Number(width).Finish();
}

// One answer, with its length in front unless it is to be wrong.
std::string Answer(Bytes* bytes, Described* described) {
  const int64_t what = bytes->Below(8);
  if (what == 0) return bytes->Text(bytes->Byte());
  if (what == 1) {
    const std::string body = bytes->Text(bytes->Byte());
    MessageWriter message(static_cast<GymnasiumMessage>(bytes->Byte()));
    return message.Bytes(body.data(), body.size()).Finish();
  }
  if (what == 2) return Description(bytes, described);
  if (what == 3) {
    const std::string raised = bytes->Text(bytes->Byte()), traceback = bytes->Text(bytes->Byte());
    return MessageWriter(GymnasiumMessage::kError).Text(raised).Text(traceback).Finish();
  }
  const bool screen = what == 4;
  MessageWriter message(screen ? GymnasiumMessage::kScreen : GymnasiumMessage::kResult);
  if (!screen) message.Number(bytes->Take<double>()).Number(static_cast<uint8_t>(bytes->Chance(30) ? 1 : 0));
  std::string content(screen ? described->screen : described->observation, '\0');
  const std::string given = bytes->Text(std::min<size_t>(content.size(), bytes->Byte()));
  std::copy(given.begin(), given.end(), content.begin());
  message.Bytes(content.data(), content.size());
  std::string answer = message.Finish();
  if (bytes->Chance(5)) answer += answer;  // two at once
  return answer;
}

void Read(const std::string& message) {
  const std::string_view body = BodyOf(message);
  const std::vector<char> exact(body.begin(), body.end());  // where a sanitizer sees its end
  const auto read = [&](auto reader) {
    Try([&] {
      MessageReader all(std::string_view(exact.data(), exact.size()));
      reader(&all);
    });
  };
  std::vector<char> observation(6);
  std::vector<uint8_t> screen(6);
  read([](MessageReader* all) { ReadGymnasiumSpec(all); });
  read([](MessageReader* all) { ReadGymnasiumError(all); });
  std::vector<double> behavior(1);
  read([&](MessageReader* all) { ReadGymnasiumResult(all, &behavior, 6, observation.data()); });
  read([&](MessageReader* all) { ReadGymnasiumScreen(all, 6, screen.data()); });
}

// What a worker's first answer makes of it: nothing, an environment, or one too large to be played here.
enum class First { kRefused, kSmall, kLarge };

First FirstOf(const std::string& answer) {
  try {
    uint32_t length = 0;
    std::memcpy(&length, answer.data(), std::min(answer.size(), sizeof(length)));
    if (BodyOf(answer).size() < length) return First::kRefused;
    MessageReader reader(BodyOf(answer).substr(0, length));
    const EnvSpec spec = ReadGymnasiumSpec(&reader).spec;
    const bool large = spec.observation_bytes() > kMaxBytes || spec.action_bytes() > kMaxBytes ||
                       (!spec.render_shape.empty() && spec.render_bytes() > kMaxBytes);
    return large ? First::kLarge : First::kSmall;
  } catch (const Error&) {
    return First::kRefused;
  }
}

void Play(EnvPool* pool, Bytes* bytes) {
  const EnvSpec& spec = pool->spec();
  std::vector<uint8_t> observation(2 * spec.observation_bytes());
  std::vector<uint8_t> screen(spec.render_shape.empty() ? 0 : 2 * spec.render_bytes());
  std::vector<int64_t> slots = {0};
  if (pool->slots() > 1) slots = {1, 0};
  const std::vector<char> actions(slots.size() * spec.action_bytes());
  double rewards[2];
  bool dones[2];
  for (int call = 0; call < 8; ++call) {
    Try([&] {
      const int64_t what = call == 0 ? 0 : bytes->Below(6);
      if (what == 0) pool->Reset(slots, {slots.begin(), slots.end()}, std::vector<int64_t>(slots.size(), 4));
      if (what == 1) pool->Render(slots, screen.data());
      if (what == 2) pool->Observe(slots, observation.data());
      if (what == 3) pool->Failure(0);
      if (what > 3) pool->Step(slots, actions.data(), rewards, dones);
    });
  }
}

// A worker must have said what it is before the pool is there, for which it has minutes: none is silent then.
void PlayWith(const std::vector<std::string>& answers, bool starts, Bytes* bytes) {
  static const auto threads = std::make_shared<ThreadPool>(2);
  std::string script;
  for (const std::string& answer : answers) {
    const auto length = static_cast<uint16_t>(answer.size());
    script.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(answer, 0, length);
  }
  const MemoryFile file(script);
  static const char* const kEnds[] = {"exit", "die", "wait"};
  const char* end = kEnds[bytes->Below(starts ? 3 : 2)];
  const int64_t piece = bytes->Chance(30) ? 1 + bytes->Below(16) : 1 << 16;
  const EnvOptions options = {{"command", Concat(NEUROEVO_FUZZ_WORKER, "\n", file.path(), "\n", piece, "\n", end)},
                              {"id", "Scripted"},
                              {"timeout", "0.03"},
                              {"workers", "2"},
                              {"retries", std::to_string(bytes->Chance(50) ? 0 : bytes->Below(3))}};
  Try([&] {
    EnvPool pool("gymnasium", options, 1 + bytes->Below(2), threads);
    Play(&pool, bytes);
  });
}

}  // namespace
}  // namespace neuroevo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neuroevo::fuzz;
  Bytes bytes(data, size);
  const auto count = static_cast<size_t>(bytes.Below(kMaxAnswers));
  const bool played = bytes.Chance(50);
  Bytes choices(data, size);
  Described described;
  std::vector<std::string> answers;
  while (answers.size() < count && !bytes.empty()) answers.push_back(Answer(&bytes, &described));
  for (const std::string& answer : answers) Read(answer);
  const First first = answers.empty() ? First::kRefused : FirstOf(answers[0]);
  // Half an answer would be waited for, for minutes, while the worker waits for another request: it ends after it.
  if (first == First::kRefused && !answers.empty()) answers.resize(1);
  // What is refused at once is played seldom: it takes as long.
  if (played && first != First::kLarge && (first == First::kSmall || bytes.Chance(20))) {
    PlayWith(answers, first == First::kSmall, &choices);
  }
  return 0;
}
