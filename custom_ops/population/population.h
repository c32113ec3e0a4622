// R rows of weights and their batched evaluation. Each row belongs to one of the population's networks, so one call can
// evaluate different architectures. Implementations: reference/ (simple, for verification), cpu/ (vectorized) and cuda/
// (GPU). Their results are bit-identical for finite weights and observations.
#ifndef NEUROEVO_POPULATION_POPULATION_H_
#define NEUROEVO_POPULATION_POPULATION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/thread_pool.h"
#include "networks/network.h"
#include "population/members.h"

namespace neuroevo {

class Population {
 public:
  // All networks must have the same input dtype, input shape and output size. backend: "cpu", "reference" (slow) or a
  // registered backend. rows >= 1. The operating system allocates the rows of "cpu" and "reference" lazily: a row that
  // is never written takes no memory. Throws if all rows together would need more memory than is currently free.
  // dtype: kFloat32, or kInt8 for networks evaluated in integers (networks/int8), with one byte per weight. With kInt8,
  // only rows [0, float_rows) also keep their float32 theta, for Read and as sources of Perturb; any other row can be
  // perturbed only in place, starting from its last Init or Assign. float_rows: -1 for all rows. With kFloat32 all rows
  // hold theta. rank: if nonzero (kFloat32 only), rows from float_rows on are low-rank members (networks/low_rank.h),
  // which hold few numbers and refer to a row with weights. Only Perturb can fill members.
  static std::unique_ptr<Population> Make(const std::string& backend, std::vector<Network> networks, int64_t rows,
                                          std::shared_ptr<ThreadPool> pool, DType dtype = DType::kFloat32,
                                          int64_t float_rows = -1, int rank = 0);
  virtual ~Population() = default;

  // Registers a backend under a name. Libraries do this when they are loaded.
  using Maker = std::unique_ptr<Population> (*)(std::vector<Network> networks, int64_t rows,
                                                std::shared_ptr<ThreadPool> pool, DType dtype, int64_t float_rows,
                                                int rank);
  struct Register {
    Register(const char* backend, Maker maker);
  };

  const std::vector<Network>& networks() const { return networks_; }

  // Replaces networks()[index] by a network with at most as many weights and as much state as the largest network that
  // the population was made with. Rows of the old network become empty. No concurrent call may use these rows or the
  // network; calls on rows of other networks may run. Not supported for populations with members.
  void Replace(int32_t index, Network network);
  int64_t rows() const { return rows_; }
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }
  int rank() const { return members_.rank(); }

  // All of the following calls validate their arguments and throw before anything is changed; then they run on the pool
  // and return when the work is done. Calls may run concurrently unless one writes a row that another uses; using a
  // member also uses its center. After its center has been refilled, a member must be refilled before it is used.

  // theta of rows[i] = initial weights of networks()[network[i]] from seeds[i]. Rows must differ.
  void Init(const std::vector<int64_t>& rows, const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds);

  // theta of rows[i] = thetas[i, :D of its network]; stride is the distance between two thetas. Rows must differ.
  void Assign(const std::vector<int64_t>& rows, const std::vector<int32_t>& network, const float* thetas,
              int64_t stride);

  // out[i, :D] = theta of rows[i]; for a member, the theta that low_rank::Materialize computes (Forward never does).
  void Read(const std::vector<int64_t>& rows, float* out, int64_t stride);

  // In list order: theta of dst[i] = theta of src[i] + scale[i] * noise(seeds[i]), one fused multiply-add per weight.
  // dst[i] == src[i] is allowed, and so is a later entry that reads or writes an earlier entry's dst: a chain is
  // (dst, src), (dst, dst), (dst, dst) ... Different chains run in parallel and long vectors are split over threads.
  // spreads[i]: -1, or a row of the same network whose theta multiplies scale[i] weight by weight, each product rounded
  // once. This row must hold float32 weights, and no entry may write it. Empty: all -1.
  // If all dst are members, dst[i] instead becomes the member with center src[i], that seed and that scale. The members
  // must be distinct, every src must hold weights, and spreads must be -1. One call fills members or weights, not both.
  void Perturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src, const std::vector<uint64_t>& seeds,
               const std::vector<float>& scale, std::vector<int64_t> spreads = {});

  // Sets the reference batch of all vbn layers: B observations with the dtype and shape of the input, which are copied.
  // Call it once, before any row is prepared and while no other call runs.
  void SetReference(const void* observations, int64_t count);

  // Computes the statistics of the rows' vbn layers by running each row's network on the reference batch; they are kept
  // with the row until it is refilled. Rows may repeat; rows that are already prepared or have no vbn are skipped. This
  // is a separate call so that rows that are never evaluated, such as parents, need no statistics.
  void Prepare(const std::vector<int64_t>& rows);

  // The statistics of a prepared row's vbn layers, in the order of network.h; empty if its network has none.
  std::vector<float> Statistics(int64_t row);

  // out[k, :] (float32, A values) = network of rows[k] applied to observations[k] (dtype and shape of the input), for
  // k < rows.size(). Rows whose network has vbn must be prepared. Rows may repeat: slots that share a row share its
  // weight reads. No other row is touched. The result for k depends only on its row, its observation and its state.
  //
  // states: with recurrent networks, states[k] in [0, R) is the index of the state that the network of rows[k] reads
  // and updates; states must be distinct and have been cleared. Otherwise they are optional: if given, they number the
  // slots of continuing episodes, and a backend may cache a slot's results and recompute only the parts that depend on
  // changed observation values, which changes no result. Concurrent calls must not use the same state.
  void Forward(const std::vector<int64_t>& rows, const void* observations, float* out,
               const std::vector<int64_t>& states = {});

  // Returns host memory from which Forward reads observations fastest.
  virtual std::shared_ptr<char> HostMemory(int64_t bytes) const {
    return {new char[bytes], [](char* m) { delete[] m; }};
  }

  // Sets states to zero, which is required at the start of an episode; does nothing if no network is recurrent.
  void ClearStates(const std::vector<int64_t>& states);

  bool recurrent() const { return state_size_ > 0; }

 protected:
  // rank, float_rows: see Make; only for backends that support members.
  Population(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank = 0,
             int64_t float_rows = -1);

  // Implementations of the calls above. Arguments are already checked and row_network_ holds the rows' new networks.
  virtual void DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) = 0;
  virtual void DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) = 0;
  virtual void DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) = 0;
  // network[i] is the network of src[i] at entry i, and thereby of dst[i] after it.
  virtual void DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src,
                         const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds,
                         const std::vector<float>& scale, const std::vector<int64_t>& spreads) = 0;
  // rows: distinct members, whose centers and scales are in members_.
  virtual void DoPerturbMembers(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds);
  // Called after reference_ has been set.
  virtual void DoSetReference() {}
  // rows: distinct, of networks with vbn; reference_count_ > 0.
  virtual void DoPrepare(const std::vector<int64_t>& rows);
  // Copies the n floats that follow the row's theta.
  virtual void DoReadStatistics(int64_t row, float* out, int64_t n);
  // states: one per row, or empty if no network is recurrent.
  virtual void DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                         const std::vector<int64_t>& states) = 0;
  // Only called if a network is recurrent.
  virtual void DoClearStates(const std::vector<int64_t>& states);

  // Checks the arguments of Forward.
  void CheckForward(const std::vector<int64_t>& rows, const void* observations, const float* out,
                    const std::vector<int64_t>& states) const;

  // Updates the data that a backend keeps per network after networks_[index] was replaced. If this throws, the previous
  // network is restored.
  virtual void DoReplace(int32_t) {}

  // Throws if the theta of a filled row is not available for reading or perturbing; in_place: for perturbing in place.
  virtual void CheckTheta(int64_t row, bool in_place) const;

  // Throws if a chain of a Perturb call needs more scratch rows than the backend has.
  virtual void CheckChains(const std::vector<int64_t>& dst, const std::vector<int64_t>& src) const;

  // Observation b of the reference batch, b < reference_count_.
  const char* ReferenceObservation(int64_t b) const {
    return reference_.data() + b * (static_cast<int64_t>(reference_.size()) / reference_count_);
  }

  const Network& NetworkOf(int64_t row) const { return networks_[row_network_[row]]; }

  // Number that uniquely identifies the current content of a row within this population; not 0.
  uint64_t Content(int64_t row) const { return content_[row]; }

  std::vector<Network> networks_;
  int64_t rows_;
  std::shared_ptr<ThreadPool> pool_;
  Members members_;
  std::vector<int32_t> row_network_;  // [R], index into networks_; -1: not filled yet
  std::vector<char> reference_;       // [B] observations
  int64_t reference_count_ = 0;       // B; 0: not set yet
  int64_t state_size_ = 0;            // floats of the networks' largest state; 0: no network is recurrent

 private:
  void CheckFits(int64_t index, const Network& network) const;
  bool Filled(int64_t row) const;
  void CheckRow(const char* what, int64_t row) const;
  void CheckFilled(int64_t row) const;
  void CheckUsable(int64_t row) const;
  void CheckPrepared(int64_t row) const;
  // Checks the spread row of an entry that fills dst, a row of that network. filled: the rows that the call writes.
  void CheckSpread(int64_t row, int64_t dst, int32_t network, const std::unordered_map<int64_t, int32_t>& filled) const;
  void CheckFill(const std::vector<int64_t>& rows, const std::vector<int32_t>& network) const;
  void SetNetwork(int64_t row, int32_t network);
  // Runs body(), which writes these rows; if it throws, they become empty.
  template <class Body>
  void WriteRows(const std::vector<int64_t>& rows, Body body);

  std::atomic<uint64_t> fills_{0};
  std::vector<uint64_t> content_;  // [R]
  std::vector<uint64_t> since_;    // per network, the smallest content number of its rows
  int64_t largest_row_ = 0;        // floats of the largest row of the networks that the population was made with
  std::vector<uint8_t> prepared_;  // [R], whether the row's vbn statistics match its theta
  std::vector<uint8_t> cleared_;   // [R], whether the state was ever cleared; empty if no network is recurrent
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_POPULATION_H_
