#include "population/int8/population.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "population/perturb_chains.h"

namespace neuroevo {

// Part of a call: rows to be filled, first by Assign and Init and then by Perturb, independently of all other parts.
struct Int8Population::Part {
  std::vector<int64_t> assign_rows;
  std::vector<int32_t> assign_networks;
  std::vector<const float*> assign_thetas;
  std::vector<int64_t> init_rows;
  std::vector<int32_t> init_networks;
  std::vector<uint64_t> init_seeds;
  std::vector<int64_t> dst, src, spreads;  // spread rows keep their thetas, so they need no scratch row
  std::vector<uint64_t> seeds;
  std::vector<float> scales;
  std::vector<int64_t> targets;  // the rows filled
};

// Float32 rows that hold the thetas of a call: the rows that keep theirs, and scratch rows returned by the destructor.
class Int8Population::ThetaRows {
 public:
  // rows: all rows that will be passed to Of. Waits until enough scratch rows are free.
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
  std::unordered_map<int64_t, int64_t> scratch_;  // scratch row of each row that keeps no theta
};

void Int8Population::Fill(const Part& part) {
  const ThetaRows theta_rows(this, {&part.assign_rows, &part.init_rows, &part.dst, &part.src, &part.targets});
  const auto places = [&](const std::vector<int64_t>& rows) {
    std::vector<int64_t> found;
    for (int64_t row : rows) found.push_back(theta_rows.Of(row));
    return found;
  };
  for (size_t i = 0; i < part.assign_rows.size(); ++i) {
    const int32_t network = part.assign_networks[i];
    const int64_t dimension = networks_[network].dimension();
    thetas_->Assign({theta_rows.Of(part.assign_rows[i])}, {network}, part.assign_thetas[i], dimension);
  }
  thetas_->Init(places(part.init_rows), part.init_networks, part.init_seeds);
  thetas_->Perturb(places(part.dst), places(part.src), part.seeds, part.scales, part.spreads);
  std::vector<Target> targets;
  for (int64_t row : part.targets) {
    targets.push_back({row, row_network_[row], thetas_->Theta(theta_rows.Of(row))});
  }
  QuantizeRows(targets);
}

int64_t Int8Population::FloatRows(int64_t float_rows, int64_t rows) {
  if (float_rows < -1 || float_rows > rows) {
    ThrowInvalid("float_rows is ", float_rows, ", expected -1 or a number in [0, ", rows, "], the number of rows");
  }
  return float_rows == -1 ? rows : float_rows;
}

Int8Population::Int8Population(std::unique_ptr<FloatPopulation> thetas, int64_t rows, int64_t float_rows)
    : Population(thetas->networks(), rows, thetas->pool()),
      thetas_(std::move(thetas)),
      float_rows_(FloatRows(float_rows, rows)),
      origins_(rows_) {
  for (int64_t row = thetas_->rows() - 1; row >= float_rows_; --row) free_scratch_.push_back(row);
  scratch_rows_ = free_scratch_.size();
}

void Int8Population::DoReplace(int32_t index) {
  ReplacePacked(index);
  thetas_->Replace(index, networks_[index]);
}

void Int8Population::CheckTheta(int64_t row, bool in_place) const {
  if (KeepsTheta(row) || (in_place && OriginOf(row).index() != 0)) return;
  ThrowInvalid("row ", row, " keeps no float32 weights to be read or perturbed: only rows [0, ", float_rows_,
               ") do, and rows filled by Init or Assign can be perturbed in place");
}

void Int8Population::CheckChains(const std::vector<int64_t>& dst, const std::vector<int64_t>& src) const {
  if (scratch_rows_ == static_cast<size_t>(rows_ - float_rows_)) return;  // enough for any call
  for (const std::vector<int32_t>& chain : PerturbChains(dst, src)) {
    std::unordered_set<int64_t> made;
    for (int32_t i : chain) {
      for (int64_t row : {dst[i], src[i]}) {
        if (!KeepsTheta(row)) made.insert(row);
      }
    }
    if (made.size() > scratch_rows_) {
      ThrowInvalid("a chain includes ", made.size(), " rows that keep no float32 weights, expected at most ",
                   scratch_rows_);
    }
  }
}

void Int8Population::DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) {
  std::vector<Part> parts(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    SetOrigin(rows[i], seeds[i]);
    parts[i].init_rows = parts[i].targets = {rows[i]};
    parts[i].init_networks = {row_network_[rows[i]]};
    parts[i].init_seeds = {seeds[i]};
  }
  for (const Part& part : parts) Fill(part);  // sequentially: each may need scratch rows of 16 MB
}

void Int8Population::DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) {
  std::vector<Part> parts(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int32_t network = row_network_[rows[i]];
    const float* theta = thetas + static_cast<int64_t>(i) * stride;
    if (!KeepsTheta(rows[i])) {
      SetOrigin(rows[i], std::make_shared<const std::vector<float>>(theta, theta + networks_[network].dimension()));
    }
    parts[i].assign_rows = parts[i].targets = {rows[i]};
    parts[i].assign_networks = {network};
    parts[i].assign_thetas = {theta};
  }
  for (const Part& part : parts) Fill(part);
}

void Int8Population::DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) {
  thetas_->Read(rows, out, stride);
}

void Int8Population::DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src,
                               const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds,
                               const std::vector<float>& scale, const std::vector<int64_t>& spreads) {
  std::vector<Part> parts;
  std::vector<Origin> origins;  // keeps the thetas that the parts point to
  for (const std::vector<int32_t>& chain : PerturbChains(dst, src)) {
    Part part;
    std::unordered_set<int64_t> filled;
    for (int32_t i : chain) {
      if (!KeepsTheta(src[i]) && filled.count(src[i]) == 0) {  // as checked, src is dst and has an origin
        origins.push_back(OriginOf(src[i]));
        const auto* theta = std::get_if<std::shared_ptr<const std::vector<float>>>(&origins.back());
        const auto* seed = std::get_if<uint64_t>(&origins.back());
        const auto dimension = static_cast<size_t>(networks_[network[i]].dimension());
        // The origin is a matching theta or a seed, unless a concurrent call is filling the row.
        if (theta != nullptr && (*theta)->size() == dimension) {
          part.assign_rows.push_back(src[i]);
          part.assign_networks.push_back(network[i]);
          part.assign_thetas.push_back((*theta)->data());
        } else {
          part.init_rows.push_back(src[i]);
          part.init_networks.push_back(network[i]);
          part.init_seeds.push_back(seed == nullptr ? 0 : *seed);
        }
        filled.insert(src[i]);
      }
      part.dst.push_back(dst[i]);
      part.src.push_back(src[i]);
      part.seeds.push_back(seeds[i]);
      part.scales.push_back(scale[i]);
      part.spreads.push_back(spreads[i]);
      filled.insert(dst[i]);
    }
    for (int32_t i : chain) {
      if (filled.erase(dst[i]) != 0) part.targets.push_back(dst[i]);
    }
    parts.push_back(std::move(part));
  }
  for (int64_t row : dst) SetOrigin(row, {});
  for (const Part& part : parts) Fill(part);
}

Int8Population::Origin Int8Population::OriginOf(int64_t row) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return origins_[row];
}

void Int8Population::SetOrigin(int64_t row, Origin origin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  origins_[row].swap(origin);  // the old origin is freed after the lock is released
}

std::vector<int64_t> Int8Population::TakeScratchRows(size_t count) {
  std::unique_lock<std::mutex> lock(mutex_);
  scratch_given_back_.wait(lock, [&] { return free_scratch_.size() >= count; });
  const std::vector<int64_t> taken(free_scratch_.end() - count, free_scratch_.end());
  free_scratch_.resize(free_scratch_.size() - count);
  return taken;
}

}  // namespace neuroevo
