// Fuzzes the options of environments: the name of a family in the first line, then "key=value", one a line. They are
// refused with an Error, or an environment is made, whose first steps must have finite numbers or say what failed.
// Files and programs are named by words that stand for some of ours, so that no other is opened. Of atari only the
// options are read, which have what there is to parse.
#include <cmath>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "envs/atari/options.h"
#include "envs/env_pool.h"
#include "envs/gymnasium/protocol.h"
#include "fuzz/native/file.h"
#include "fuzz/native/target.h"

namespace neuroevo::fuzz {
namespace {

// What a worker of the family gymnasium says: one discrete action, an observation of one byte, a result, once more.
std::string Script() {
  MessageWriter spec(GymnasiumMessage::kSpec), result(GymnasiumMessage::kResult);
  spec.Number(kGymnasiumVersion).Number(uint8_t{0}).Number(uint32_t{1}).Number(int64_t{1});
  spec.Number(uint8_t{1}).Number(int64_t{1}).Number(int64_t{0}).Number(uint32_t{0}).Number(uint32_t{0});
  const std::string answer = result.Number(1.0).Number(uint8_t{0}).Number(uint8_t{7}).Finish();
  std::string script;
  for (const std::string& each : {spec.Finish(), answer, answer, answer}) {
    const auto length = static_cast<uint16_t>(each.size());
    script.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(each);
  }
  return script;
}

// The value of an option, or what it stands for.
std::string Named(const std::string& key, const std::string& value) {
  static const MemoryFile script(Script());
  if (key != "map" && key != "model" && key != "command") return value;
  const bool word = value.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (!word) return "/dev/null/" + value;  // which cannot be there
  if (key == "map") return Concat(NEUROEVO_FUZZ_MAZES, "/", value, ".txt");
  if (key == "model") return Concat(NEUROEVO_FUZZ_MUJOCO_ASSETS, "/", value, ".xml");
  if (value.empty()) return value;
  return value == "worker" ? Concat(NEUROEVO_FUZZ_WORKER, "\n", script.path(), "\n1000\nexit") : "/dev/null/" + value;
}

void CheckFinite(const EnvSpec& spec, const std::vector<char>& observation) {
  if (spec.observation_dtype != DType::kFloat64) return;
  for (size_t i = 0; i < observation.size(); i += sizeof(double)) {
    double value;
    std::memcpy(&value, &observation[i], sizeof(value));
    Require(std::isfinite(value), "number ", i / sizeof(value), " of the observation is ", value);
  }
}

void Play(EnvPool* pool) {
  const EnvSpec& spec = pool->spec();
  Require(spec.num_actions >= 1 && spec.frame_skip >= 1, spec.num_actions, " actions, frame skip ", spec.frame_skip);
  Require(spec.observation_bytes() > 0, "observations of ", spec.observation_bytes(), " bytes");
  std::vector<char> observation(spec.observation_bytes());
  const std::vector<float> controls(spec.num_actions, 0.5f);
  const int32_t action = 0;
  double reward = 0;
  bool done = false;
  pool->Reset({0}, {1}, {0});
  for (int step = 0; step < 2 && !done; ++step) {
    pool->Step({0}, spec.discrete() ? static_cast<const void*>(&action) : controls.data(), &reward, &done);
    pool->Observe({0}, observation.data());
    CheckFinite(spec, observation);
    Require(std::isfinite(reward), "the reward is ", reward);
  }
}

}  // namespace
}  // namespace neuroevo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neuroevo;
  static const auto threads = std::make_shared<ThreadPool>(1);
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  std::string family;
  std::getline(lines, family);
  std::vector<std::string> given;
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) {
      const std::string key = line.substr(0, equals);
      line = Concat(key, "=", fuzz::Named(key, line.substr(equals + 1)));
    }
    given.push_back(line);
  }
  try {
    const EnvOptions options = ParseEnvOptions(given);
    if (family == "atari") {
      ReadAtariOptions(options);
    } else {
      EnvPool pool(family, options, 1, threads);
      fuzz::Play(&pool);
    }
  } catch (const Error&) {
  }
  return 0;
}
