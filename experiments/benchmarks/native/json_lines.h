// Figures as they are measured: one JSON object a line, to a file as well as, in words, to the screen.
#ifndef NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_JSON_LINES_H_
#define NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_JSON_LINES_H_

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <type_traits>

#include "core/error.h"

namespace neuroevo {

// JsonObject().Add("name", "x").Add("us", 1.5).text() is {"name": "x", "us": 1.5}.
class JsonObject {
 public:
  template <class Value>
  JsonObject& Add(const char* key, const Value& value) {
    text_ += Concat(text_.size() > 1 ? ", \"" : "\"", key, "\": ");
    if constexpr (std::is_floating_point_v<Value>) {
      char digits[32];
      std::snprintf(digits, sizeof(digits), "%.6g", static_cast<double>(value));
      text_ += digits;
    } else if constexpr (std::is_arithmetic_v<Value>) {
      text_ += std::to_string(value);
    } else {
      text_ += Concat('"', value, '"');  // our values need no escapes
    }
    return *this;
  }
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

class JsonLines {
 public:
  // Opens the file for appending; an empty path disables it. Throws if the file cannot be opened.
  explicit JsonLines(const std::string& path) {
    if (path.empty()) return;
    file_.open(path, std::ios::app);
    if (!file_) ThrowNotFound("cannot write to ", path);
  }
  void Write(const JsonObject& object) {
    if (file_.is_open()) file_ << object.text() << std::endl;  // there even if a later figure never comes
  }

 private:
  std::ofstream file_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_JSON_LINES_H_
