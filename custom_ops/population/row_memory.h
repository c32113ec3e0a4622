// The memory of a population's rows, mapped from the operating system so that a row never written takes no memory.
#ifndef NEUROEVO_POPULATION_ROW_MEMORY_H_
#define NEUROEVO_POPULATION_ROW_MEMORY_H_

#include <cstdint>

namespace neuroevo {

class RowMemory {
 public:
  // Unused bytes after the end of a row: vector loads may run over the end.
  static constexpr int64_t kSlack = 256;

  // Maps rows of `bytes` plus slack. Throws if this fails. weights: number of weights per row, for the message.
  RowMemory(int64_t rows, int64_t bytes, int64_t weights);
  ~RowMemory();
  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;

  char* Row(int64_t row) const { return memory_ + row * pitch_; }
  int64_t bytes(int64_t rows) const { return rows * pitch_; }  // taken by `rows` rows once they are written

 private:
  int64_t rows_;
  int64_t pitch_;  // bytes from row to row, a multiple of 64
  char* memory_ = nullptr;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_ROW_MEMORY_H_
