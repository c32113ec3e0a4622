// Rows of integer networks (int8.h). Whatever fills a row makes its theta in float32 and quantises it there and then,
// so that Forward finds bytes only, and a row is the same whichever way its theta came about.
//
// Rows [0, float_rows) keep their theta. Of the others it is made in a scratch row, for a few chains at a time, and
// forgotten; what Init put there is remembered as its seed, so that a chain can start from it.
#ifndef NEUROEVO_POPULATION_INT8_POPULATION_H_
#define NEUROEVO_POPULATION_INT8_POPULATION_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "population/host_population.h"
#include "population/int8_backend.h"
#include "population/int8_network.h"
#include "population/population.h"
#include "population/row_memory.h"

namespace neuroevo {

class Int8Population : public Population {
 public:
  // thetas: a float32 population of the same networks, rows and pool, to make thetas in.
  Int8Population(std::unique_ptr<HostPopulation> thetas, std::unique_ptr<Int8Backend> backend, int64_t float_rows);

 private:
  struct Part;
  class ThetaRows;

  // A theta, its network, and the row that it is quantised into.
  struct Target {
    int64_t row;
    int32_t network;
    const float* theta;
  };
  // Whole rows of a layer's weights [inputs, outputs]: what one task quantises.
  struct Piece {
    int step;
    int64_t begin, end;
  };

  void CheckTheta(int64_t row, bool in_place) const override;
  void DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) override;
  void DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) override;
  void DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) override;
  void DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src, const std::vector<int32_t>& network,
                 const std::vector<uint64_t>& seeds, const std::vector<float>& scale) override;
  void DoForward(const std::vector<int64_t>& rows, const void* observations, float* out) override;

  bool KeepsTheta(int64_t row) const { return row < float_rows_; }
  int64_t TakeScratchRow();
  void Fill(const Part& part);
  void QuantiseRows(const std::vector<Target>& targets);
  void QuantisePiece(const Target& target, const Piece& piece, int exponent);

  std::unique_ptr<HostPopulation> thetas_;  // rows from float_rows on are scratch
  std::unique_ptr<Int8Backend> backend_;
  int64_t float_rows_;
  std::vector<Int8Network> int8_networks_;
  std::vector<std::vector<Piece>> pieces_;          // of each network
  std::unique_ptr<RowMemory> packed_;               // [R]
  std::vector<std::optional<uint64_t>> init_seed_;  // [R], of the other rows, while they hold what Init made of it

  std::mutex mutex_;
  std::vector<int64_t> free_scratch_;  // the last one given back is taken first: it is in the cache, and few get used
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_INT8_POPULATION_H_
