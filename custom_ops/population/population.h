// R rows of weights and their batched evaluation. Each row belongs to one of the population's networks, so that
// different architectures play in one call. Implementations: reference.cc (written to be read), cpu.cc (vectorised);
// on finite weights and observations their results are the same bits.
#ifndef NEUROEVO_POPULATION_POPULATION_H_
#define NEUROEVO_POPULATION_POPULATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "population/network.h"

namespace neuroevo {

class Population {
 public:
  // All networks must agree in input dtype, input shape and output size. backend: "cpu" or "reference". rows >= 1.
  // Rows are allocated lazily by the operating system: a row never written costs no memory.
  static std::unique_ptr<Population> Make(const std::string& backend, std::vector<Network> networks, int64_t rows,
                                          std::shared_ptr<ThreadPool> pool);
  virtual ~Population() = default;

  const std::vector<Network>& networks() const { return networks_; }
  int64_t rows() const { return rows_; }
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }

  // All of these validate first and throw before anything is changed; then they run on the pool and call done.
  // Arrays passed in (also out and observations) must live until done is called. They may run concurrently as long as
  // no row is written by one call while another uses it. A row counts as filled from the call that fills it on.

  // theta of rows[i] = initial weights of networks()[network[i]] from seeds[i]. Rows must differ.
  void Init(std::vector<int64_t> rows, std::vector<int32_t> network, std::vector<uint64_t> seeds, Done done);

  // theta of rows[i] = thetas[i, :D of its network]; stride is the distance between two thetas. Rows must differ.
  void Assign(std::vector<int64_t> rows, std::vector<int32_t> network, const float* thetas, int64_t stride, Done done);

  // out[i, :D] = theta of rows[i].
  void Read(std::vector<int64_t> rows, float* out, int64_t stride, Done done);

  // In list order: theta of dst[i] = theta of src[i] + scale[i] * noise(seeds[i]), by one fused multiply-add a weight.
  // dst[i] == src[i] is allowed, and so is a later entry that reads or writes an earlier entry's dst: a chain is
  // (dst, src), (dst, dst), (dst, dst) ... Different chains run in parallel and long vectors are split over threads.
  void Perturb(std::vector<int64_t> dst, std::vector<int64_t> src, std::vector<uint64_t> seeds,
               std::vector<float> scale, Done done);

  // out[k, :] (float32, A values) = network of rows[k] applied to observations[k] (dtype and shape of the input), for
  // k < rows.size(). Rows may repeat: slots that share a row share its weight reads. No other row is touched. The
  // result for k depends only on its row and its observation.
  void Forward(std::vector<int64_t> rows, const void* observations, float* out, Done done);

 protected:
  Population(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool);

  // The work behind the calls above, for arguments already checked. row_network_ already holds the rows' new networks.
  virtual void DoInit(std::vector<int64_t> rows, std::vector<uint64_t> seeds, Done done) = 0;
  virtual void DoAssign(std::vector<int64_t> rows, const float* thetas, int64_t stride, Done done) = 0;
  virtual void DoRead(std::vector<int64_t> rows, float* out, int64_t stride, Done done) = 0;
  // network[i] is the network of src[i], and from then on of dst[i], at that point of the list.
  virtual void DoPerturb(std::vector<int64_t> dst, std::vector<int64_t> src, std::vector<int32_t> network,
                         std::vector<uint64_t> seeds, std::vector<float> scale, Done done) = 0;
  virtual void DoForward(std::vector<int64_t> rows, const void* observations, float* out, Done done) = 0;

  const Network& NetworkOf(int64_t row) const { return networks_[row_network_[row]]; }

  std::vector<Network> networks_;
  int64_t rows_;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<int32_t> row_network_;  // [R], index into networks_; -1: not filled yet

 private:
  void CheckRow(const char* what, int64_t row) const;
  void CheckFilled(int64_t row) const;
  void CheckFill(const std::vector<int64_t>& rows, const std::vector<int32_t>& network) const;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_POPULATION_H_
