#include "c_api/guard.h"

namespace neuroevo {

static_assert(NEUROEVO_INVALID_ARGUMENT == static_cast<int>(Error::Kind::kInvalidArgument));
static_assert(NEUROEVO_OUT_OF_RANGE == static_cast<int>(Error::Kind::kOutOfRange));
static_assert(NEUROEVO_NOT_FOUND == static_cast<int>(Error::Kind::kNotFound));
static_assert(NEUROEVO_INTERNAL == static_cast<int>(Error::Kind::kInternal));
static_assert(NEUROEVO_CANCELLED == static_cast<int>(Error::Kind::kCancelled));
static_assert(NEUROEVO_ENVIRONMENT == static_cast<int>(Error::Kind::kEnvironment));

namespace {
thread_local std::string last_message;
}

const char* LastError() noexcept { return last_message.c_str(); }

void SetLastError(const char* message) noexcept {
  try {
    last_message = message;
  } catch (const std::bad_alloc&) {
    last_message = kOutOfMemory;  // fits the string's inline buffer, so that nothing is allocated
  }
}

}  // namespace neuroevo
