// What fuzz targets share. A target is one .cc file that defines LLVMFuzzerTestOneInput. clang links it with libFuzzer,
// which makes inputs; everywhere else replay.cc has the main() that feeds it with those of tests/fuzz/inputs.
#ifndef NEUROEVO_TESTS_FUZZ_NATIVE_TARGET_H_
#define NEUROEVO_TESTS_FUZZ_NATIVE_TARGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/philox.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace neuroevo::fuzz {

// Ends the process, which is how a target fails, unless `condition` holds.
template <class... Parts>
void Require(bool condition, const Parts&... what) {
  if (condition) return;
  std::fprintf(stderr, "ERROR: %s\n", Concat(what...).c_str());
  std::abort();
}

// Reads an input from its front. Past its end everything is 0.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }

  template <class T>
  T Take() {
    T value{};
    const size_t n = std::min(size_, sizeof(value));
    if (n > 0) std::memcpy(&value, data_, n);
    Skip(n);
    return value;
  }
  uint8_t Byte() { return Take<uint8_t>(); }
  // In [0, n), from one byte.
  int64_t Below(int64_t n) { return Byte() % n; }
  bool Chance(int percent) { return Below(100) >= 100 - percent; }

  // Up to n bytes.
  std::string Text(size_t n) {
    n = std::min(size_, n);
    const std::string text(reinterpret_cast<const char*>(data_), n);
    Skip(n);
    return text;
  }

 private:
  void Skip(size_t n) {
    data_ += n;
    size_ -= n;
  }

  const uint8_t* data_;
  size_t size_;
};

// Numbers derived from a text, for values that do not come from the input.
class Random {
 public:
  explicit Random(const std::string& text) {
    for (const char c : text) seed_ = (seed_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;  // FNV-1a
  }
  uint64_t Next() { return PhiloxWords(seed_, index_++).word[0]; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }

 private:
  uint64_t seed_ = 0xcbf29ce484222325, index_ = 0;
};

}  // namespace neuroevo::fuzz

#endif  // NEUROEVO_TESTS_FUZZ_NATIVE_TARGET_H_
