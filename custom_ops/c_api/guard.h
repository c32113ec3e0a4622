// What functions of the C interface do with exceptions, in whichever library they are.
#ifndef NEUROEVO_C_API_GUARD_H_
#define NEUROEVO_C_API_GUARD_H_

#include <string>

#include "c_api/neuroevo.h"
#include "core/error.h"

namespace neuroevo {

// The message of this thread's last failed call, which neuroevo_last_error() gives out.
std::string& LastError();

// Runs body; turns an exception into a code and a message.
template <class Body>
int Guard(Body body) {
  try {
    body();
    return NEUROEVO_OK;
  } catch (const Error& e) {
    LastError() = e.what();
    return static_cast<int>(e.kind());
  } catch (const std::exception& e) {
    LastError() = e.what();
  } catch (...) {
    LastError() = "an exception of unknown type";
  }
  return NEUROEVO_INTERNAL;
}

}  // namespace neuroevo

#endif  // NEUROEVO_C_API_GUARD_H_
