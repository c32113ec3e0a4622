// What functions of the C interface do with exceptions, in whichever library they are.
#ifndef NEUROEVO_C_API_GUARD_H_
#define NEUROEVO_C_API_GUARD_H_

#include <new>
#include <string>

#include "c_api/neuroevo.h"
#include "core/error.h"

namespace neuroevo {

// The message of this thread's last failed call, which neuroevo_last_error() gives out.
const char* LastError() noexcept;
// Sets it, to that of std::bad_alloc where there is no memory for another.
void SetLastError(const char* message) noexcept;
inline constexpr char kOutOfMemory[] = "out of memory";

// Runs body; turns an exception into a code and a message.
template <class Body>
int Guard(Body body) noexcept {
  try {
    body();
    return NEUROEVO_OK;
  } catch (const Error& e) {
    SetLastError(e.what());
    return static_cast<int>(e.kind());
  } catch (const std::bad_alloc&) {
    SetLastError(kOutOfMemory);
  } catch (const std::exception& e) {
    SetLastError(e.what());
  } catch (...) {
    SetLastError("an exception of unknown type");
  }
  return NEUROEVO_INTERNAL;
}

}  // namespace neuroevo

#endif  // NEUROEVO_C_API_GUARD_H_
