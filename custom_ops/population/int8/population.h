// Population of integer networks (networks/int8). Every call that fills a row computes its theta in float32 and
// quantizes it immediately, so Forward reads only bytes, and a row does not depend on how its theta was computed.
//
// Rows [0, float_rows) keep their theta. The theta of any other row is computed in a scratch row, for a few chains
// concurrently, and discarded. The seed of Init or the theta of Assign (in host memory) is kept so that a chain can
// start from it. Subclasses provide the storage of the integers and the arithmetic.
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
  // Resolves float_rows of Population::Make to a number of rows. Throws unless it is -1 or in [0, rows].
  static int64_t FloatRows(int64_t float_rows, int64_t rows);

 protected:
  // A theta, its network, and the row that it is quantized into.
  struct Target {
    int64_t row;
    int32_t network;
    const float* theta;
  };

  // thetas: a float32 population with the same networks and pool, in which thetas are computed. Its first float_rows
  // rows belong to this population's rows; the others are scratch rows, at least one if float_rows < rows.
  Int8Population(std::unique_ptr<FloatPopulation> thetas, int64_t rows, int64_t float_rows);

  // Fills the packed rows from their thetas.
  virtual void QuantizeRows(const std::vector<Target>& targets) = 0;

 private:
  struct Part;
  class ThetaRows;
  // Source of a row that keeps no theta: the seed of Init, the theta of Assign, or neither.
  using Origin = std::variant<std::monostate, uint64_t, std::shared_ptr<const std::vector<float>>>;

  // Updates the packed layout for a new networks_[index]; throws if its rows do not fit.
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
  std::vector<int64_t> free_scratch_;  // last in, first out: a reused row is still in the cache, and few are touched
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_INT8_POPULATION_H_
