// Population of integer networks in host memory, whose calls are split into thread pool tasks.
#ifndef NEUROEVO_POPULATION_INT8_HOST_POPULATION_H_
#define NEUROEVO_POPULATION_INT8_HOST_POPULATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "population/host_population.h"
#include "population/int8/backend.h"
#include "population/int8/population.h"
#include "population/row_memory.h"
#include "population/slot_memory.h"

namespace neuroevo {

class Int8HostPopulation : public Int8Population {
 public:
  // thetas: a float32 population with the same networks, rows and pool; its rows from float_rows on are scratch rows.
  Int8HostPopulation(std::unique_ptr<HostPopulation> thetas, std::unique_ptr<Int8Backend> backend, int64_t rows,
                     int64_t float_rows);

  int64_t Bytes() const { return packed_->bytes(rows_); }  // of the packed rows once all are filled

 private:
  // Rows [begin, end) of a layer's weights [inputs, outputs], quantized by one task.
  struct Piece {
    int step;
    int64_t begin, end;
  };

  // Layout of a network in a packed row, its pieces, and the memory that holds its rows.
  struct Packed {
    Int8Network network;
    std::vector<Piece> pieces;
    const RowMemory* memory;
  };

  Packed PackedOf(int32_t network) const;
  void ReplacePacked(int32_t index) override;
  void QuantizeRows(const std::vector<Target>& targets) override;
  void DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                 const std::vector<int64_t>& states) override;
  void QuantizePiece(const Target& target, const Piece& piece, int exponent);

  std::unique_ptr<Int8Backend> backend_;
  std::vector<Packed> layouts_;        // per network
  int64_t row_bytes_ = 0;              // largest packed row of the initial networks
  int64_t weights_ = 0;                // most weights of the initial networks
  std::unique_ptr<RowMemory> packed_;  // [R]
  // [R], for replacement networks that take more bytes though they have no more weights, because convolution weights
  // are padded on some processors.
  std::unique_ptr<RowMemory> wide_;
  SlotMemories memories_;  // [R]
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_INT8_HOST_POPULATION_H_
