// Integer rows in the host's memory, and the split of the calls into tasks of the thread pool.
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
  // thetas: a float32 population of the same networks, rows and pool; its rows from float_rows on are scratch.
  Int8HostPopulation(std::unique_ptr<HostPopulation> thetas, std::unique_ptr<Int8Backend> backend, int64_t rows,
                     int64_t float_rows);

  int64_t Bytes() const { return packed_->bytes(rows_); }  // of the integers, once all rows are filled

 private:
  // Whole rows of a layer's weights [inputs, outputs]: what one task quantizes.
  struct Piece {
    int step;
    int64_t begin, end;
  };

  // A network's layers in a packed row, their pieces, and the memory with its rows.
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
  std::vector<Packed> layouts_;        // of each network
  int64_t row_bytes_ = 0;              // the most of them
  int64_t weights_ = 0;                // likewise
  std::unique_ptr<RowMemory> packed_;  // [R]
  // [R] of networks that came later and, though they have no more weights, take more bytes: those of convolutions do,
  // on processors for which they are padded.
  std::unique_ptr<RowMemory> wide_;
  SlotMemories memories_;  // [R]
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_INT8_HOST_POPULATION_H_
