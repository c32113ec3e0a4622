// The memory of a population's rows on the GPU.
#ifndef NEUROEVO_POPULATION_CUDA_ROWS_MEMORY_H_
#define NEUROEVO_POPULATION_CUDA_ROWS_MEMORY_H_

#include <cstdint>
#include <string>

#include "core/error.h"
#include "gpu/device.h"

namespace neuroevo::cuda {

class RowsMemory {
 public:
  // Throws if the rows need more memory than is free. what: description of the rows for the message.
  RowsMemory(int64_t rows, int64_t row_bytes, const std::string& what)
      : memory_(device::Where::kDevice, Checked(rows, row_bytes, what)) {}

  char* data() const { return memory_.data(); }

 private:
  static int64_t Checked(int64_t rows, int64_t row_bytes, const std::string& what) {
    const double needed = static_cast<double>(rows) * static_cast<double>(row_bytes);
    const int64_t free = device::FreeBytes();
    if (needed > static_cast<double>(free)) {
      ThrowInvalid(rows, " rows of ", row_bytes, " bytes each, ", what, ", need ", needed * 1e-9,
                   " GB of GPU memory, but only ", static_cast<double>(free) * 1e-9, " GB are free (", device::Name(),
                   ")");
    }
    return rows * row_bytes;
  }

  device::Memory memory_;
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_ROWS_MEMORY_H_
