// Rows of integer networks (networks/int8). Whatever fills a row makes its theta in float32 and quantizes it there and
// then, so that Forward finds bytes only, and a row is the same whichever way its theta came about.
//
// Rows [0, float_rows) keep their theta. Of the others it is made in a scratch row, for a few chains at a time, and
// forgotten; what Init or Assign put there is remembered, as its seed or in the host's memory, so that a chain can
// start from it. A subclass says where the integers are and what computes with them.
#ifndef NEUROEVO_POPULATION_INT8_POPULATION_H_
#define NEUROEVO_POPULATION_INT8_POPULATION_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "networks/int8/network.h"
#include "population/float_population.h"

namespace neuroevo {

class Int8Population : public Population {
 public:
  // float_rows as in Population::Make, as a number of rows. Throws unless it is -1 or one in [0, rows].
  static int64_t FloatRows(int64_t float_rows, int64_t rows);

 protected:
  // A theta, its network, and the row that it is quantized into.
  struct Target {
    int64_t row;
    int32_t network;
    const float* theta;
  };

  // thetas: a float32 population of the same networks and pool to make thetas in: its first float_rows rows are this
  // one's, the others are scratch, which there must be where float_rows < rows.
  Int8Population(std::unique_ptr<FloatPopulation> thetas, int64_t rows, int64_t float_rows);

  // Fills the packed rows from their thetas.
  virtual void QuantizeRows(const std::vector<Target>& targets) = 0;

 private:
  struct Part;
  class ThetaRows;
  // What a row was last filled from that keeps no theta: something else, the seed of Init, or the theta of Assign.
  using Origin = std::variant<std::monostate, uint64_t, std::shared_ptr<const std::vector<float>>>;

  // Of a packed row, before networks_[index] is used; throws where it does not fit.
  virtual void ReplacePacked(int32_t index) = 0;

  void DoReplace(int32_t index) override;
  void CheckTheta(int64_t row, bool in_place) const override;
  void CheckChains(const std::vector<int64_t>& dst, const std::vector<int64_t>& src) const override;
  void DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) override;
  void DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) override;
  void DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) override;
  void DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src, const std::vector<int32_t>& network,
                 const std::vector<uint64_t>& seeds, const std::vector<float>& scale,
                 const std::vector<int64_t>& spreads) override;

  bool KeepsTheta(int64_t row) const { return row < float_rows_; }
  Origin OriginOf(int64_t row) const;
  void SetOrigin(int64_t row, Origin origin);
  std::vector<int64_t> TakeScratchRows(size_t count);  // at most scratch_rows_
  void Fill(const Part& part);

  std::unique_ptr<FloatPopulation> thetas_;
  int64_t float_rows_;
  size_t scratch_rows_;
  mutable std::mutex mutex_;
  std::vector<Origin> origins_;  // [R]
  std::condition_variable scratch_given_back_;
  std::vector<int64_t> free_scratch_;  // the last one given back is taken first: it is in the cache, and few get used
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_INT8_POPULATION_H_
