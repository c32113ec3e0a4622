// Translation of exceptions to error codes and messages, for the C interfaces of all libraries.
#ifndef NEUROEVO_C_API_GUARD_H_
#define NEUROEVO_C_API_GUARD_H_

#include <new>
#include <string>

#include "c_api/neuroevo.h"
#include "core/error.h"

namespace neuroevo {

// Return the message of this thread's last failed call, for neuroevo_last_error().
const char* LastError() noexcept;
// Set that message; if memory for it runs out, set kOutOfMemory.
void SetLastError(const char* message) noexcept;
inline constexpr char kOutOfMemory[] = "out of memory";

// Run body and translate an exception to a code and a message.
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
