// Registry of environment families and reading of their options.
#include "envs/env.h"

#include <charconv>
#include <mutex>

#include "core/error.h"

namespace neuroevo {
namespace {

std::mutex registry_mutex;

std::map<std::string, EnvFamily>& Registry() {
  static auto* registry = new std::map<std::string, EnvFamily>();
  return *registry;
}

}  // namespace

int64_t EnvSpec::observation_bytes() const {
  int64_t bytes = static_cast<int64_t>(SizeOf(observation_dtype));
  for (int64_t dim : observation_shape) bytes *= dim;
  return bytes;
}

EnvOptions ParseEnvOptions(const std::vector<std::string>& options) {
  EnvOptions parsed;
  for (const std::string& option : options) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos) ThrowInvalid("option '", option, "' is not of the form key=value");
    const std::string key = option.substr(0, equals);
    if (!parsed.emplace(key, option.substr(equals + 1)).second) ThrowInvalid("option '", key, "' is given twice");
  }
  return parsed;
}

bool RegisterEnvFamily(const std::string& name, EnvFamily family) {
  std::lock_guard<std::mutex> lock(registry_mutex);
  Registry()[name] = std::move(family);
  return true;
}

std::unique_ptr<EnvFactory> MakeEnvFactory(const std::string& name, const EnvOptions& options) {
  EnvFamily family;
  {
    std::lock_guard<std::mutex> lock(registry_mutex);
    auto found = Registry().find(name);
    if (found == Registry().end()) {
      std::string known;
      for (const auto& entry : Registry()) known += (known.empty() ? "" : ", ") + entry.first;
      ThrowNotFound("environment family '", name, "' is unknown, expected one of: ", known.empty() ? "(none)" : known);
    }
    family = found->second;
  }
  return family(options);
}

std::string OptionReader::String(const std::string& key, const std::string& fallback) {
  auto found = options_.find(key);
  if (found == options_.end()) return fallback;
  std::string value = found->second;
  options_.erase(found);
  return value;
}

int64_t OptionReader::Int(const std::string& key, int64_t fallback, int64_t low, int64_t high) {
  const std::string text = String(key, std::to_string(fallback));
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    ThrowInvalid(family_, " option ", key, " is '", text, "', expected an integer in [", low, ", ", high, "]");
  }
  return value;
}

void OptionReader::Finish() const {
  if (!options_.empty()) ThrowInvalid(family_, " has no option '", options_.begin()->first, "'");
}

}  // namespace neuroevo
