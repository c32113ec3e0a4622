// Registry of environment families and parsing of their options.
#include "envs/env.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/fork.h"

namespace neuroevo {
namespace {

ProcessMutex registry_mutex;

std::map<std::string, EnvFamily>& Registry() {
  static auto* registry = new std::map<std::string, EnvFamily>();
  return *registry;
}

int64_t Bytes(DType dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = static_cast<int64_t>(SizeOf(dtype));
  for (int64_t dim : shape) bytes *= dim;
  return bytes;
}

[[noreturn]] void ThrowNotSupported(const char* what) { ThrowInvalid(what, " is not supported by this environment"); }

// Parse the whole text as a T.
template <class T>
std::optional<T> Parse(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

int64_t EnvSpec::observation_bytes() const { return Bytes(observation_dtype, observation_shape); }

int64_t EnvSpec::behavior_bytes() const {
  if (behavior_shape.empty()) ThrowNotSupported("behavior");
  return Bytes(behavior_dtype, behavior_shape);
}

int64_t EnvSpec::render_bytes() const {
  if (render_shape.empty()) ThrowNotSupported("rendering");
  return Bytes(DType::kUint8, render_shape);
}

int64_t EnvSpec::state_bytes() const {
  if (state_size == 0) ThrowNotSupported("a state");
  return state_size * static_cast<int64_t>(sizeof(double));
}

void Env::Behavior(void*) const { ThrowNotSupported("behavior"); }
void Env::State(double*) const { ThrowNotSupported("a state"); }
void Env::Render(uint8_t*) const { ThrowNotSupported("rendering"); }

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
  const ProcessLock lock(registry_mutex);
  Registry()[name] = std::move(family);
  return true;
}

std::unique_ptr<EnvFactory> MakeEnvFactory(const std::string& name, const EnvOptions& options) {
  EnvFamily family;
  {
    const ProcessLock lock(registry_mutex);
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

std::optional<std::string> OptionReader::Take(const std::string& key) {
  known_ += (known_.empty() ? "" : ", ") + key;
  auto found = options_.find(key);
  if (found == options_.end()) return std::nullopt;
  std::string value = found->second;
  options_.erase(found);
  return value;
}

template <class... Parts>
void OptionReader::Reject(const std::string& key, const std::string& text, const Parts&... expected) const {
  ThrowInvalid(family_, " option ", key, " is '", text, "', expected ", expected...);
}

std::string OptionReader::String(const std::string& key, const std::string& fallback) {
  return Take(key).value_or(fallback);
}

std::string OptionReader::OneOf(const std::string& key, const std::vector<std::string>& choices) {
  const std::string text = Take(key).value_or(choices.front());
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
    std::string listed;
    for (const std::string& choice : choices) listed += (listed.empty() ? "" : ", ") + choice;
    Reject(key, text, "one of: ", listed);
  }
  return text;
}

bool OptionReader::Bool(const std::string& key, bool fallback) {
  const std::string text = Take(key).value_or(fallback ? "true" : "false");
  if (text != "true" && text != "false") Reject(key, text, "true or false");
  return text == "true";
}

int64_t OptionReader::Int(const std::string& key, int64_t fallback, int64_t low, int64_t high) {
  return OptionalInt(key, low, high).value_or(fallback);
}

std::optional<int64_t> OptionReader::OptionalInt(const std::string& key, int64_t low, int64_t high) {
  const std::optional<std::string> text = Take(key);
  if (!text) return std::nullopt;
  const auto value = Parse<int64_t>(*text);
  if (!value || *value < low || *value > high) Reject(key, *text, "an integer in [", low, ", ", high, "]");
  return value;
}

double OptionReader::Double(const std::string& key, double fallback, double low, double high) {
  const std::optional<std::string> text = Take(key);
  if (!text) return fallback;
  const auto value = Parse<double>(*text);
  // "< low or > high" would accept NaN.
  if (!value || !(*value >= low && *value <= high)) Reject(key, *text, "a number in [", low, ", ", high, "]");
  return *value;
}

double OptionReader::Double(const std::string& key, double fallback) {
  const std::optional<std::string> text = Take(key);
  if (!text) return fallback;
  const auto value = Parse<double>(*text);
  if (!value || !std::isfinite(*value)) Reject(key, *text, "a finite number");
  return *value;
}

std::vector<int64_t> OptionReader::Ints(const std::string& key, int64_t low, int64_t high) {
  const std::string text = Take(key).value_or("");
  std::vector<int64_t> values;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto value = Parse<int64_t>(text.substr(begin, end - begin));
    if (!value || *value < low || *value > high)
      Reject(key, text, "integers in [", low, ", ", high, "] between commas");
    values.push_back(*value);
    begin = end + 1;
  }
  return values;
}

OptionReader::Range OptionReader::ReadRange(const std::string& key, Range fallback) {
  const std::optional<std::string> text = Take(key);
  if (!text) return fallback;
  const size_t comma = text->find(',');
  const auto low = Parse<double>(text->substr(0, comma));
  const auto high = comma == std::string::npos ? std::nullopt : Parse<double>(text->substr(comma + 1));
  if (!low || !high || !(*low <= *high)) Reject(key, *text, "two numbers low,high with low <= high");
  return {*low, *high};
}

void OptionReader::Finish() const {
  if (!options_.empty()) {
    ThrowInvalid(family_, " has no option '", options_.begin()->first, "', expected one of: ", known_);
  }
}

}  // namespace neuroevo
