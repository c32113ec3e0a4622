#include "c_api/guard.h"

namespace neuroevo {

std::string& LastError() {
  thread_local std::string message;
  return message;
}

}  // namespace neuroevo
