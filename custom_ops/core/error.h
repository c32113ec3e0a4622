// The one exception type of the native code, and the checks that throw it with the bad value and the legal range.
#ifndef NEUROEVO_CORE_ERROR_H_
#define NEUROEVO_CORE_ERROR_H_

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

namespace neuroevo {

class Error : public std::runtime_error {
 public:
  // The numbers cross the C interface and TensorFlow: they are those of neuroevo_code in c_api/neuroevo.h and of
  // ErrorKind in neuroevo/native/ffi.py.
  enum class Kind {
    kInvalidArgument = 1,
    kOutOfRange = 2,
    kNotFound = 3,
    kInternal = 4,
    kCancelled = 5,
    kEnvironment = 6,  // an environment raised an exception, timed out or exited; the request was valid
  };

  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// Joins anything that streams into one string: Concat("slot ", 9, " is live").
template <class... Parts>
std::string Concat(const Parts&... parts) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // otherwise running out of memory would truncate the text silently
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void ThrowInvalid(const Parts&... parts) {
  throw Error(Error::Kind::kInvalidArgument, Concat(parts...));
}

template <class... Parts>
[[noreturn]] void ThrowNotFound(const Parts&... parts) {
  throw Error(Error::Kind::kNotFound, Concat(parts...));
}

// Throws "slot 9 is out of range [0, 8)" unless 0 <= value < bound.
inline void CheckIndex(const char* what, int64_t value, int64_t bound) {
  if (value < 0 || value >= bound) {
    throw Error(Error::Kind::kOutOfRange, Concat(what, " ", value, " is out of range [0, ", bound, ")"));
  }
}

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_ERROR_H_
