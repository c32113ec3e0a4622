// The memory of a population's rows on the GPU.
#ifndef NEUROEVO_POPULATION_CUDA_ROWS_MEMORY_H_
#define NEUROEVO_POPULATION_CUDA_ROWS_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/error.h"
#include "gpu/device.h"
#include "gpu/memory_source.h"

namespace neuroevo::cuda {

class RowsMemory {
 public:
  // source: null to ask the GPU itself. Throws what the rows need and what is free, where that is less.
  RowsMemory(int64_t rows, int64_t row_bytes, const std::string& what, std::shared_ptr<MemorySource> source)
      : source_(std::move(source)) {
    const double needed = static_cast<double>(rows) * static_cast<double>(row_bytes);
    const int64_t free = device::FreeBytes();
    if (source_ == nullptr && needed > static_cast<double>(free)) {
      ThrowInvalid(rows, " rows of ", row_bytes, " bytes each, ", what, ", need ", needed * 1e-9,
                   " GB of the GPU's memory, and ", static_cast<double>(free) * 1e-9, " GB are free (", device::Name(),
                   ")");
    }
    const int64_t bytes = rows * row_bytes;
    data_ = static_cast<char*>(source_ ? source_->Allocate(bytes) : device::Allocate(device::Where::kDevice, bytes));
  }
  ~RowsMemory() { source_ ? source_->Free(data_) : device::Free(device::Where::kDevice, data_); }
  RowsMemory(const RowsMemory&) = delete;
  RowsMemory& operator=(const RowsMemory&) = delete;

  char* data() const { return data_; }

 private:
  std::shared_ptr<MemorySource> source_;
  char* data_;
};

}  // namespace neuroevo::cuda

#endif  // NEUROEVO_POPULATION_CUDA_ROWS_MEMORY_H_
