#include "population/row_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace neuroevo {

namespace {

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

RowMemory::RowMemory(int64_t rows, int64_t bytes, int64_t weights) : rows_(rows) {
  bytes += kSlack;
  // Long rows start in different cache sets: the extra line keeps the pitch from being a multiple of the page size.
  pitch_ = bytes < 4096 ? RoundUp(bytes, 64) : RoundUp(bytes, 4096) + 64;
  const double total = static_cast<double>(pitch_) * static_cast<double>(rows);
  void* memory = MAP_FAILED;
  errno = ENOMEM;
  if (total < 0x1p46) {
    memory = mmap(nullptr, pitch_ * rows, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (memory == MAP_FAILED) {
    ThrowInvalid("cannot map ", total * 0x1p-30, " GiB for ", rows, " rows of ", weights,
                 " weights: ", std::strerror(errno));
  }
  memory_ = static_cast<char*>(memory);
  // Huge pages save most address translations of the forward pass; failure only makes it slower.
  (void)madvise(memory, pitch_ * rows, MADV_HUGEPAGE);
}

RowMemory::~RowMemory() { munmap(memory_, pitch_ * rows_); }

}  // namespace neuroevo
