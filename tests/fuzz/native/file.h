// A file in memory with a name, for what reads files.
#ifndef NEUROEVO_TESTS_FUZZ_NATIVE_FILE_H_
#define NEUROEVO_TESTS_FUZZ_NATIVE_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz/native/target.h"

namespace neuroevo::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    Require(descriptor_ >= 0 && write(descriptor_, content.data(), content.size()) == ssize_t(content.size()),
            "there is no room for a file of ", content.size(), " bytes");
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return Concat("/proc/", getpid(), "/fd/", descriptor_); }

 private:
  int descriptor_;
};

}  // namespace neuroevo::fuzz

#endif  // NEUROEVO_TESTS_FUZZ_NATIVE_FILE_H_
