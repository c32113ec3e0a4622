#include "population/int8_population.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "population/perturb_chains.h"

namespace neuroevo {

// Rows to be filled that depend on no other part: first by Init, then by Perturb; or one row that is assigned.
struct Int8Population::Part {
  std::vector<int64_t> init_rows;
  std::vector<int32_t> init_networks;
  std::vector<uint64_t> init_seeds;
  const float* theta = nullptr;  // what is assigned to the only target, or null
  std::vector<int64_t> dst, src;
  std::vector<uint64_t> seeds;
  std::vector<float> scales;
  std::vector<int64_t> targets;  // the rows filled
};

// Where thetas are while they are needed: rows that keep theirs, and scratch rows, which are given back at the end.
class Int8Population::ThetaRows {
 public:
  // rows: all that will be asked for. Waits for scratch rows that other calls have.
  ThetaRows(Int8Population* population, const std::vector<const std::vector<int64_t>*>& rows)
      : population_(population) {
    for (const std::vector<int64_t>* some : rows) {
      for (int64_t row : *some) {
        if (!population->KeepsTheta(row)) scratch_[row] = -1;
      }
    }
    const auto places = population->TakeScratchRows(scratch_.size());
    auto next = places.begin();
    for (auto& [row, scratch] : scratch_) scratch = *next++;
  }
  ~ThetaRows() {
    const std::lock_guard<std::mutex> lock(population_->mutex_);
    for (const auto& [row, scratch] : scratch_) population_->free_scratch_.push_back(scratch);
    population_->scratch_given_back_.notify_all();
  }
  ThetaRows(const ThetaRows&) = delete;
  ThetaRows& operator=(const ThetaRows&) = delete;

  int64_t Of(int64_t row) const { return population_->KeepsTheta(row) ? row : scratch_.at(row); }

 private:
  Int8Population* population_;
  std::unordered_map<int64_t, int64_t> scratch_;  // of rows that keep no theta
};

void Int8Population::Fill(const Part& part) {
  const ThetaRows theta_rows(this, {&part.init_rows, &part.dst, &part.src, &part.targets});
  const auto places = [&](const std::vector<int64_t>& rows) {
    std::vector<int64_t> found;
    for (int64_t row : rows) found.push_back(theta_rows.Of(row));
    return found;
  };
  thetas_->Init(places(part.init_rows), part.init_networks, part.init_seeds);
  thetas_->Perturb(places(part.dst), places(part.src), part.seeds, part.scales);
  std::vector<Target> targets;
  for (int64_t row : part.targets) {
    const int32_t network = row_network_[row];
    const int64_t place = theta_rows.Of(row);
    if (part.theta != nullptr) thetas_->Assign({place}, {network}, part.theta, networks_[network].dimension());
    targets.push_back({row, network, thetas_->Theta(place)});
  }
  QuantiseRows(targets);
}

int64_t Int8Population::FloatRows(int64_t float_rows, int64_t rows) {
  if (float_rows < -1 || float_rows > rows) {
    ThrowInvalid("float_rows is ", float_rows, ", expected -1 or one in [0, ", rows, "], the number of rows");
  }
  return float_rows == -1 ? rows : float_rows;
}

Int8Population::Int8Population(std::unique_ptr<FloatPopulation> thetas, int64_t rows, int64_t float_rows)
    : Population(thetas->networks(), rows, thetas->pool()),
      thetas_(std::move(thetas)),
      float_rows_(FloatRows(float_rows, rows)),
      init_seed_(rows_) {
  for (int64_t row = thetas_->rows() - 1; row >= float_rows_; --row) free_scratch_.push_back(row);
  scratch_rows_ = free_scratch_.size();
}

void Int8Population::CheckTheta(int64_t row, bool in_place) const {
  if (KeepsTheta(row) || (in_place && init_seed_[row])) return;
  ThrowInvalid("row ", row, " keeps no float32 weights to be read or perturbed: only rows [0, ", float_rows_,
               ") do, and what Init has filled can be perturbed in place");
}

void Int8Population::CheckChains(const std::vector<int64_t>& dst, const std::vector<int64_t>& src) const {
  if (scratch_rows_ == static_cast<size_t>(rows_ - float_rows_)) return;  // enough for all there are
  for (const std::vector<int32_t>& chain : PerturbChains(dst, src)) {
    std::unordered_set<int64_t> made;
    for (int32_t i : chain) {
      for (int64_t row : {dst[i], src[i]}) {
        if (!KeepsTheta(row)) made.insert(row);
      }
    }
    if (made.size() > scratch_rows_) {
      ThrowInvalid("a chain goes through ", made.size(), " rows that keep no float32 weights, expected at most ",
                   scratch_rows_);
    }
  }
}

void Int8Population::DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) {
  std::vector<Part> parts(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    init_seed_[rows[i]] = seeds[i];
    parts[i].init_rows = parts[i].targets = {rows[i]};
    parts[i].init_networks = {row_network_[rows[i]]};
    parts[i].init_seeds = {seeds[i]};
  }
  for (const Part& part : parts) Fill(part);  // one after the other: each may need scratch rows of 16 MB
}

void Int8Population::DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) {
  std::vector<Part> parts(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    init_seed_[rows[i]].reset();
    parts[i].targets = {rows[i]};
    parts[i].theta = thetas + static_cast<int64_t>(i) * stride;
  }
  for (const Part& part : parts) Fill(part);
}

void Int8Population::DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) {
  thetas_->Read(rows, out, stride);
}

void Int8Population::DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src,
                               const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds,
                               const std::vector<float>& scale) {
  std::vector<Part> parts;
  for (const std::vector<int32_t>& chain : PerturbChains(dst, src)) {
    Part part;
    std::unordered_set<int64_t> filled;
    for (int32_t i : chain) {
      if (!KeepsTheta(src[i]) && filled.count(src[i]) == 0) {  // as checked, src is dst and holds what Init made
        part.init_rows.push_back(src[i]);
        part.init_networks.push_back(network[i]);
        part.init_seeds.push_back(init_seed_[src[i]].value_or(0));  // there, unless another call fills it now
        filled.insert(src[i]);
      }
      part.dst.push_back(dst[i]);
      part.src.push_back(src[i]);
      part.seeds.push_back(seeds[i]);
      part.scales.push_back(scale[i]);
      filled.insert(dst[i]);
    }
    for (int32_t i : chain) {
      if (filled.erase(dst[i]) != 0) part.targets.push_back(dst[i]);
    }
    parts.push_back(std::move(part));
  }
  for (int64_t row : dst) init_seed_[row].reset();
  for (const Part& part : parts) Fill(part);
}

std::vector<int64_t> Int8Population::TakeScratchRows(size_t count) {
  std::unique_lock<std::mutex> lock(mutex_);
  scratch_given_back_.wait(lock, [&] { return free_scratch_.size() >= count; });
  const std::vector<int64_t> taken(free_scratch_.end() - count, free_scratch_.end());
  free_scratch_.resize(free_scratch_.size() - count);
  return taken;
}

}  // namespace neuroevo
