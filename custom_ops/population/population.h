// R rows of weights and their batched evaluation. Each row belongs to one of the population's networks, so that
// different architectures play in one call. Implementations: reference/ (written to be read), cpu/ (vectorized),
// cuda/ (on a GPU); on finite weights and observations their results are the same bits.
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
  // All networks must agree in input dtype, input shape and output size. backend: "cpu", "reference" (slow, written to
  // be read) or one that was registered. rows >= 1. The rows of the first two are allocated lazily by the operating
  // system: a row never written costs no memory. Throws where all of them would need more than is free now.
  // dtype: kFloat32, or kInt8 for networks evaluated in integers (networks/int8), one byte a weight. Then only rows
  // [0, float_rows) hold their theta too, for Read and as what Perturb starts from; of the others Perturb can start
  // from what Init or Assign put there, in the row itself. float_rows: -1 for all rows. With kFloat32 all rows hold
  // theta. rank: not 0, with kFloat32: rows from float_rows on are members of low rank (networks/low_rank.h), which
  // hold few numbers and refer to a row with weights. Perturb alone fills them.
  static std::unique_ptr<Population> Make(const std::string& backend, std::vector<Network> networks, int64_t rows,
                                          std::shared_ptr<ThreadPool> pool, DType dtype = DType::kFloat32,
                                          int64_t float_rows = -1, int rank = 0);
  virtual ~Population() = default;

  // Makes a backend known under a name. Libraries do so when they are loaded.
  using Maker = std::unique_ptr<Population> (*)(std::vector<Network> networks, int64_t rows,
                                                std::shared_ptr<ThreadPool> pool, DType dtype, int64_t float_rows,
                                                int rank);
  struct Register {
    Register(const char* backend, Maker maker);
  };

  const std::vector<Network>& networks() const { return networks_; }

  // Makes networks()[index] another network, which may have no more weights and no more state than the largest network
  // that the population was made with. Rows of the old one then hold nothing. Meanwhile no call may use such a row or
  // the network; calls on rows of other networks may run. Not for members.
  void Replace(int32_t index, Network network);
  int64_t rows() const { return rows_; }
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }
  int rank() const { return members_.rank(); }

  // All of these validate first and throw before anything is changed; then they run on the pool and return when all is
  // done. They may run concurrently as long as no row is written by one call while another uses it; who uses a member
  // uses its center, too. Once its center has been filled anew, a member can only be filled again.

  // theta of rows[i] = initial weights of networks()[network[i]] from seeds[i]. Rows must differ.
  void Init(const std::vector<int64_t>& rows, const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds);

  // theta of rows[i] = thetas[i, :D of its network]; stride is the distance between two thetas. Rows must differ.
  void Assign(const std::vector<int64_t>& rows, const std::vector<int32_t>& network, const float* thetas,
              int64_t stride);

  // out[i, :D] = theta of rows[i]; of a member that of low_rank::Materialize, which Forward never makes.
  void Read(const std::vector<int64_t>& rows, float* out, int64_t stride);

  // In list order: theta of dst[i] = theta of src[i] + scale[i] * noise(seeds[i]), by one fused multiply-add a weight.
  // dst[i] == src[i] is allowed, and so is a later entry that reads or writes an earlier entry's dst: a chain is
  // (dst, src), (dst, dst), (dst, dst) ... Different chains run in parallel and long vectors are split over threads.
  // spreads[i]: -1, or a row of the same network whose theta multiplies scale[i] weight by weight, each product rounded
  // once; it holds float32 weights, and no entry writes it. Empty: all -1.
  // Where all dst are members, each becomes the member of src with that seed and scale instead. They must differ, and
  // src hold weights; members have no spreads; members and other rows are filled by different calls.
  void Perturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src, const std::vector<uint64_t>& seeds,
               const std::vector<float>& scale, std::vector<int64_t> spreads = {});

  // The B observations (dtype and shape of the input) whose statistics the vbn layers of all rows take. Once, before
  // any row is prepared and while no other call runs. Copied.
  void SetReference(const void* observations, int64_t count);

  // Computes the statistics of the rows' vbn layers by running each row's network over the reference batch; they are
  // kept with the row until it is filled anew. Rows may repeat; a row that is prepared already or whose network has no
  // vbn costs nothing. A call of its own, so that rows that are never played, as parents, go without.
  void Prepare(const std::vector<int64_t>& rows);

  // The statistics of a prepared row's vbn layers, in the order of network.h; empty where its network has none.
  std::vector<float> Statistics(int64_t row);

  // out[k, :] (float32, A values) = network of rows[k] applied to observations[k] (dtype and shape of the input), for
  // k < rows.size(). Rows whose network has vbn must be prepared. Rows may repeat: slots that share a row share its
  // weight reads. No other row is touched. The result for k depends only on its row, its observation and its state.
  //
  // states: where a network is recurrent, states[k] in [0, R) is what the network of rows[k] goes on from and leaves
  // for the next call; they must differ and have been cleared. Where none is, they may be left out. If they are given,
  // as the numbers of slots that go on playing with the same row, a backend may keep what it has computed for a slot
  // and compute only what has changed in its next observation; that changes no result. No two calls may have the same
  // state at once.
  void Forward(const std::vector<int64_t>& rows, const void* observations, float* out,
               const std::vector<int64_t>& states = {});

  // Memory from which Forward takes observations fastest.
  virtual std::shared_ptr<char> HostMemory(int64_t bytes) const {
    return {new char[bytes], [](char* m) { delete[] m; }};
  }

  // Makes states zeros, as they are to be when an episode begins; costs nothing where no network is recurrent.
  void ClearStates(const std::vector<int64_t>& states);

  bool recurrent() const { return state_size_ > 0; }

 protected:
  // rank, float_rows: as in Make, of a backend that has members.
  Population(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank = 0,
             int64_t float_rows = -1);

  // The work behind the calls above, for arguments already checked. row_network_ already holds the rows' new networks.
  virtual void DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) = 0;
  virtual void DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) = 0;
  virtual void DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) = 0;
  // network[i] is the network of src[i], and from then on of dst[i], at that point of the list.
  virtual void DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src,
                         const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds,
                         const std::vector<float>& scale, const std::vector<int64_t>& spreads) = 0;
  // rows: different members, whose centers and scales are in members_.
  virtual void DoPerturbMembers(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds);
  // reference_ has been set.
  virtual void DoSetReference() {}
  // rows: different, of networks with vbn; reference_count_ > 0.
  virtual void DoPrepare(const std::vector<int64_t>& rows);
  // Copies the n floats behind the row's theta.
  virtual void DoReadStatistics(int64_t row, float* out, int64_t n);
  // states: one for each row, or none where no network is recurrent.
  virtual void DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                         const std::vector<int64_t>& states) = 0;
  // Only called where a network is recurrent.
  virtual void DoClearStates(const std::vector<int64_t>& states);

  // What Forward checks.
  void CheckForward(const std::vector<int64_t>& rows, const void* observations, const float* out,
                    const std::vector<int64_t>& states) const;

  // For backends that keep something of each network: networks_[index] is new. Where this throws, the one before comes
  // back.
  virtual void DoReplace(int32_t) {}

  // Throws where the theta of a filled row is no longer there to be read or perturbed; in_place: perturbed into itself.
  virtual void CheckTheta(int64_t row, bool in_place) const;

  // Throws where the rows that the chains of a Perturb call go through are too many for what there is to make them in.
  virtual void CheckChains(const std::vector<int64_t>& dst, const std::vector<int64_t>& src) const;

  // One of the reference batch, b < reference_count_.
  const char* ReferenceObservation(int64_t b) const {
    return reference_.data() + b * (static_cast<int64_t>(reference_.size()) / reference_count_);
  }

  const Network& NetworkOf(int64_t row) const { return networks_[row_network_[row]]; }

  // A number that stands for what a row was filled with, and for nothing else in this population; not 0.
  uint64_t Content(int64_t row) const { return content_[row]; }

  std::vector<Network> networks_;
  int64_t rows_;
  std::shared_ptr<ThreadPool> pool_;
  Members members_;
  std::vector<int32_t> row_network_;  // [R], index into networks_; -1: not filled yet
  std::vector<char> reference_;       // [B] observations
  int64_t reference_count_ = 0;       // B; 0: not set yet
  int64_t state_size_ = 0;            // floats of the networks' largest state; 0: none is recurrent

 private:
  void CheckFits(int64_t index, const Network& network) const;
  bool Filled(int64_t row) const;
  void CheckRow(const char* what, int64_t row) const;
  void CheckFilled(int64_t row) const;
  void CheckUsable(int64_t row) const;
  void CheckPrepared(int64_t row) const;
  // Of an entry that makes dst, a row of that network. filled: the rows that the call writes.
  void CheckSpread(int64_t row, int64_t dst, int32_t network, const std::unordered_map<int64_t, int32_t>& filled) const;
  void CheckFill(const std::vector<int64_t>& rows, const std::vector<int32_t>& network) const;
  void SetNetwork(int64_t row, int32_t network);
  // Runs body(), which writes what these rows hold; where it throws they hold nothing.
  template <class Body>
  void WriteRows(const std::vector<int64_t>& rows, Body body);

  std::atomic<uint64_t> fills_{0};
  std::vector<uint64_t> content_;  // [R]
  std::vector<uint64_t> since_;    // of each network, the first number of content of its rows
  int64_t largest_row_ = 0;        // floats of a row, of the networks that the population was made with
  std::vector<uint8_t> prepared_;  // [R], whether the row's statistics are those of its theta; of networks with vbn
  std::vector<uint8_t> cleared_;   // [R], whether the state ever was; where a network is recurrent
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_POPULATION_H_
