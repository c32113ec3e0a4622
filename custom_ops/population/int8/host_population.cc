#include "population/int8/host_population.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "networks/int8/quantize.h"
#include "networks/int8/rules.h"
#include "population/slot_blocks.h"

namespace neuroevo {

namespace {

constexpr int64_t kPieceWeights = 1 << 15;  // approximate weights per task
constexpr int64_t kMostBytes = 8;           // most bytes per convolution weight, including a backend's padding

}  // namespace

Int8HostPopulation::Int8HostPopulation(std::unique_ptr<HostPopulation> thetas, std::unique_ptr<Int8Backend> backend,
                                       int64_t rows, int64_t float_rows)
    : Int8Population(std::move(thetas), rows, float_rows),
      backend_(std::move(backend)),
      memories_(rows, [this] { return backend_->MakeSlotMemory(); }) {
  for (const Network& network : networks_) {
    layouts_.push_back(PackedOf(static_cast<int32_t>(layouts_.size())));
    row_bytes_ = std::max(row_bytes_, layouts_.back().network.row_bytes);
    weights_ = std::max(weights_, network.dimension());
  }
  packed_ = std::make_unique<RowMemory>(rows_, row_bytes_, weights_);
  for (Packed& made : layouts_) made.memory = packed_.get();
}

Int8HostPopulation::Packed Int8HostPopulation::PackedOf(int32_t network) const {
  Packed made = {Int8Network(networks_[network], network), {}, nullptr};
  std::vector<int64_t> sizes;
  for (const Int8Step& step : made.network.steps) {
    sizes.push_back(step.dense() ? step.layer.weights : backend_->ConvBytes(step.layer));
    const int64_t whole = step.inputs;
    const int64_t piece = step.dense() ? std::max<int64_t>(1, kPieceWeights / step.outputs) : whole;
    for (int64_t begin = 0; begin < whole; begin += piece) {
      made.pieces.push_back({static_cast<int>(sizes.size()) - 1, begin, std::min(begin + piece, whole)});
    }
  }
  made.network.Place(sizes);
  return made;
}

void Int8HostPopulation::ReplacePacked(int32_t index) {
  Packed made = PackedOf(index);
  made.memory = packed_.get();
  if (made.network.row_bytes > row_bytes_) {
    const int64_t most = row_bytes_ + kMostBytes * weights_;
    if (made.network.row_bytes > most) {
      ThrowInvalid("network ", index, " needs ", made.network.row_bytes, " bytes as int8, expected at most ", most,
                   ": the largest network that the population was created with has ", weights_, " weights");
    }
    if (wide_ == nullptr) wide_ = std::make_unique<RowMemory>(rows_, most, weights_);
    made.memory = wide_.get();
  }
  layouts_[index] = std::move(made);
}

void Int8HostPopulation::QuantizeRows(const std::vector<Target>& targets) {
  struct Task {
    Target target;
    Piece piece;
    size_t layer;  // index into largest
  };
  std::vector<Task> tasks;
  size_t layers = 0;
  for (const Target& target : targets) {
    for (const Piece& piece : layouts_[target.network].pieces) tasks.push_back({target, piece, layers + piece.step});
    layers += layouts_[target.network].network.steps.size();
  }
  std::vector<std::atomic<uint32_t>> largest(layers);  // of each layer's absolute weights
  const int64_t count = static_cast<int64_t>(tasks.size());
  pool_->ParallelFor(count, [&](int64_t i) {
    const auto& [target, piece, layer] = tasks[i];
    const Int8Step& step = layouts_[target.network].network.steps[piece.step];
    const float* weights = target.theta + step.layer.offset + piece.begin * step.outputs;
    const uint32_t found = LargestBits(weights, (piece.end - piece.begin) * step.outputs);
    for (uint32_t before = largest[layer]; before < found && !largest[layer].compare_exchange_weak(before, found);) {
    }
  });
  pool_->ParallelFor(count, [&](int64_t i) {
    const auto& [target, piece, layer] = tasks[i];
    QuantizePiece(target, piece, int8::WeightExponent(largest[layer]));
  });
}

void Int8HostPopulation::QuantizePiece(const Target& target, const Piece& piece, int exponent) {
  const Int8Step& step = layouts_[target.network].network.steps[piece.step];
  char* row = layouts_[target.network].memory->Row(target.row);
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
    Quantize(weights + from, count, exponent, packed + from);
  } else {
    std::vector<int8_t> plain(count);
    Quantize(weights, count, exponent, plain.data());
    backend_->ArrangeConv(step.layer, plain.data(), packed);
  }
}

void Int8HostPopulation::DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                                   const std::vector<int64_t>& states) {
  const SlotBlocks slots(rows, pool_->threads(), Int8Backend::kMaxSlots);
  const int64_t tasks = static_cast<int64_t>(slots.blocks.size());
  pool_->ParallelFor(tasks, [&](int64_t task) {
    const SlotBlock& block = slots.blocks[task];
    const int64_t row = rows[slots.order[block.first]];
    const int network = row_network_[row];
    const void* block_observations[Int8Backend::kMaxSlots];
    float* block_outs[Int8Backend::kMaxSlots];
    SlotMemory* memories[Int8Backend::kMaxSlots] = {};
    slots.Places(block, networks_[network], observations, out, block_observations, block_outs);
    for (int s = 0; s < block.slots && !states.empty(); ++s) {
      memories[s] = memories_.Lend(states[slots.order[block.first + s]], Content(row));
    }
    const Packed& layout = layouts_[network];
    backend_->Evaluate(layout.network, layout.memory->Row(row), block.slots, block_observations, memories, block_outs);
    for (SlotMemory* memory : memories) SlotMemories::Keep(memory, Content(row));
  });
}

}  // namespace neuroevo
