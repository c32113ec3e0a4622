// Arguments for calls of the C interface, in range and out of it, as an input has them.
#ifndef NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_ARGUMENTS_H_
#define NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_ARGUMENTS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "c_api/neuroevo.h"
#include "fuzz/native/target.h"

namespace neuroevo::fuzz {

// What a call returned: success, or a code and a reason.
inline bool Succeeded(int code) {
  Require(code >= NEUROEVO_OK && code <= NEUROEVO_ENVIRONMENT, "a call returned ", code, ", which is no code");
  Require(code == NEUROEVO_OK || *neuroevo_last_error() != '\0', "a call failed with code ", code, " and no message");
  return code == NEUROEVO_OK;
}

// An array of exactly these values, which may be missing.
template <class T>
class Array {
 public:
  Array(std::vector<T> values, bool missing) : values_(std::move(values)), missing_(missing) {}
  T* get() { return missing_ ? nullptr : values_.data(); }
  const T* get() const { return missing_ ? nullptr : values_.data(); }

 private:
  std::vector<T> values_;
  bool missing_;
};

// Largest array; larger ones are null, since a network of an input may have more outputs than libFuzzer's memory holds.
constexpr int64_t kMostValues = int64_t{1} << 24;

class Arguments : public Bytes {
 public:
  using Bytes::Bytes;

  // Mostly in [0, n), sometimes just outside or far out of range.
  int64_t Index(int64_t n) {
    constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
    static const int64_t kOdd[] = {-1,
                                   -2,
                                   kLow,
                                   kLow + 1,
                                   kHigh,
                                   kHigh - 1,
                                   kHigh / 2,
                                   kHigh / 8,
                                   int64_t{1} << 41,
                                   int64_t{1} << 32,
                                   -(int64_t{1} << 32),
                                   int64_t{1} << 29};
    const uint8_t byte = Byte();
    if (byte >= 244) return kOdd[byte - 244];
    return byte % 24 == 23 ? n : byte % std::max<int64_t>(n, 1);
  }
  // Of one call.
  int64_t Length() { return Below(5); }
  // The length to pass to a call: mostly the true one, otherwise an invalid one.
  int64_t Told(int64_t length) { return Chance(2) ? -1 - Below(2) : length; }
  bool Missing() { return Chance(2); }

  Array<int64_t> Indices(int64_t length, int64_t n) {
    std::vector<int64_t> values(length);
    for (int64_t& value : values) value = Index(n);
    return {std::move(values), Missing()};
  }
  Array<int32_t> Networks(int64_t length, int64_t n) {
    std::vector<int32_t> values(length);
    for (int32_t& value : values) value = static_cast<int32_t>(Index(n));
    return {std::move(values), Missing()};
  }
  Array<uint64_t> Seeds(int64_t length) {
    std::vector<uint64_t> values(length);
    for (uint64_t& value : values) value = Byte() * 0x0101010101010101u;
    return {std::move(values), Missing()};
  }
  float Float() {
    static const float kOdd[] = {0.0f, -0.0f, 1e-42f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN};
    const uint8_t byte = Byte();
    return byte >= 248 ? kOdd[byte - 248] : (static_cast<float>(byte) - 100) / 64;
  }
  Array<float> Floats(int64_t length) {
    std::vector<float> values(length);
    for (float& value : values) value = Float();
    return {std::move(values), Missing()};
  }
  Array<float> EqualFloats(int64_t length) {
    if (length > kMostValues) return {{}, true};
    std::vector<float> values(length, Float());
    return {std::move(values), Missing()};
  }
  Array<double> Doubles(int64_t length) {
    std::vector<double> values(length);
    for (double& value : values) value = Float();
    return {std::move(values), Missing()};
  }
  // That many bytes, of bytes or finite float32.
  Array<char> Observations(int64_t length) {
    if (length > kMostValues) return {{}, true};
    const char byte = static_cast<char>(Byte() & 0x3f);  // four such are a finite number
    std::vector<char> values(length, byte);
    if (length > 0) values[Byte() % length] = static_cast<char>(Byte() & 0x3f);
    return {std::move(values), Missing()};
  }
  // Room for a result.
  template <class T>
  Array<T> Room(int64_t length) {
    if (length > kMostValues) return {{}, true};
    return {std::vector<T>(length), Missing()};
  }
  // One of the texts, or none.
  const char* OneOf(const std::vector<const char*>& texts) {
    return Missing() ? nullptr : texts[Below(static_cast<int64_t>(texts.size()))];
  }
};

}  // namespace neuroevo::fuzz

#endif  // NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_ARGUMENTS_H_
