#include "population/int8_population.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "population/int8.h"
#include "population/int8_quantise.h"
#include "population/slot_blocks.h"

namespace neuroevo {

namespace {

constexpr int64_t kPieceWeights = 1 << 15;  // about so many per task

}  // namespace

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
  explicit ThetaRows(Int8Population* population) : population_(population) {}
  ~ThetaRows() {
    const std::lock_guard<std::mutex> lock(population_->mutex_);
    for (const auto& [row, scratch] : scratch_) population_->free_scratch_.push_back(scratch);
  }
  ThetaRows(const ThetaRows&) = delete;
  ThetaRows& operator=(const ThetaRows&) = delete;

  int64_t Of(int64_t row) {
    if (population_->KeepsTheta(row)) return row;
    const auto found = scratch_.find(row);
    if (found != scratch_.end()) return found->second;
    return scratch_[row] = population_->TakeScratchRow();
  }

 private:
  Int8Population* population_;
  std::unordered_map<int64_t, int64_t> scratch_;  // of rows that keep no theta
};

void Int8Population::Fill(const Part& part) {
  ThetaRows theta_rows(this);
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
    if (part.theta == nullptr) {
      targets.push_back({row, network, thetas_->Theta(theta_rows.Of(row))});
      continue;
    }
    if (KeepsTheta(row)) thetas_->Assign({row}, {network}, part.theta, networks_[network].dimension());
    targets.push_back({row, network, part.theta});
  }
  QuantiseRows(targets);
}

Int8Population::Int8Population(std::unique_ptr<HostPopulation> thetas, std::unique_ptr<Int8Backend> backend,
                               int64_t float_rows)
    : Population(thetas->networks(), thetas->rows(), thetas->pool()),
      thetas_(std::move(thetas)),
      backend_(std::move(backend)),
      float_rows_(float_rows == -1 ? rows_ : float_rows),
      init_seed_(rows_) {
  if (float_rows < -1 || float_rows > rows_) {
    ThrowInvalid("float_rows is ", float_rows, ", expected -1 or one in [0, ", rows_, "], the number of rows");
  }
  int64_t bytes = 0, weights = 0;
  for (const Network& network : networks_) {
    Int8Network made(network, static_cast<int64_t>(int8_networks_.size()));
    std::vector<int64_t> sizes;
    pieces_.emplace_back();
    for (const Int8Step& step : made.steps) {
      sizes.push_back(step.dense() ? step.layer.weights : backend_->ConvBytes(step.layer));
      const int64_t whole = step.inputs;
      const int64_t piece = step.dense() ? std::max<int64_t>(1, kPieceWeights / step.outputs) : whole;
      for (int64_t begin = 0; begin < whole; begin += piece) {
        pieces_.back().push_back({static_cast<int>(sizes.size()) - 1, begin, std::min(begin + piece, whole)});
      }
    }
    made.Place(sizes);
    bytes = std::max(bytes, made.row_bytes);
    weights = std::max(weights, network.dimension());
    int8_networks_.push_back(std::move(made));
  }
  packed_ = std::make_unique<RowMemory>(rows_, bytes, weights);
  for (int64_t row = rows_ - 1; row >= float_rows_; --row) free_scratch_.push_back(row);
}

void Int8Population::CheckTheta(int64_t row, bool in_place) const {
  if (KeepsTheta(row) || (in_place && init_seed_[row])) return;
  ThrowInvalid("row ", row, " keeps no float32 weights to be read or perturbed: only rows [0, ", float_rows_,
               ") do, and what Init has filled can be perturbed in place");
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

void Int8Population::DoForward(const std::vector<int64_t>& rows, const void* observations, float* out) {
  const SlotBlocks slots(rows, pool_->threads(), Int8Backend::kMaxSlots);
  const int64_t tasks = static_cast<int64_t>(slots.blocks.size());
  pool_->ParallelFor(tasks, [&](int64_t task) {
    const SlotBlock& block = slots.blocks[task];
    const int64_t row = rows[slots.order[block.first]];
    const int network = row_network_[row];
    const void* block_observations[Int8Backend::kMaxSlots];
    float* block_outs[Int8Backend::kMaxSlots];
    slots.Places(block, networks_[network], observations, out, block_observations, block_outs);
    backend_->Evaluate(int8_networks_[network], packed_->Row(row), block.slots, block_observations, block_outs);
  });
}

int64_t Int8Population::TakeScratchRow() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (free_scratch_.empty()) throw Error(Error::Kind::kInternal, "rows are filled by two calls at once");
  const int64_t row = free_scratch_.back();
  free_scratch_.pop_back();
  return row;
}

void Int8Population::QuantiseRows(const std::vector<Target>& targets) {
  struct Task {
    Target target;
    Piece piece;
    size_t layer;  // index into largest
  };
  std::vector<Task> tasks;
  size_t layers = 0;
  for (const Target& target : targets) {
    for (const Piece& piece : pieces_[target.network]) tasks.push_back({target, piece, layers + piece.step});
    layers += int8_networks_[target.network].steps.size();
  }
  std::vector<std::atomic<uint32_t>> largest(layers);  // of each layer's absolute weights
  const int64_t count = static_cast<int64_t>(tasks.size());
  pool_->ParallelFor(count, [&](int64_t i) {
    const auto& [target, piece, layer] = tasks[i];
    const Int8Step& step = int8_networks_[target.network].steps[piece.step];
    const float* weights = target.theta + step.layer.offset + piece.begin * step.outputs;
    const uint32_t found = LargestBits(weights, (piece.end - piece.begin) * step.outputs);
    for (uint32_t before = largest[layer]; before < found && !largest[layer].compare_exchange_weak(before, found);) {
    }
  });
  pool_->ParallelFor(count, [&](int64_t i) {
    const auto& [target, piece, layer] = tasks[i];
    QuantisePiece(target, piece, int8::WeightExponent(largest[layer]));
  });
}

void Int8Population::QuantisePiece(const Target& target, const Piece& piece, int exponent) {
  const Int8Step& step = int8_networks_[target.network].steps[piece.step];
  char* row = packed_->Row(target.row);
  int8_t* packed = reinterpret_cast<int8_t*>(row + step.weights_place);
  const float* weights = target.theta + step.layer.offset;
  if (piece.begin == 0) {
    reinterpret_cast<int32_t*>(row)[piece.step] = exponent;
    if (step.has_bias) {
      memcpy(row + step.bias_place, target.theta + step.bias.offset, step.outputs * sizeof(float));
    }
  }
  const int64_t from = piece.begin * step.outputs, count = (piece.end - piece.begin) * step.outputs;
  if (step.dense()) {
    Quantise(weights + from, count, exponent, packed + from);
  } else {
    std::vector<int8_t> plain(count);
    Quantise(weights, count, exponent, plain.data());
    backend_->ArrangeConv(step.layer, plain.data(), packed);
  }
}

}  // namespace neuroevo
