#include "population/host_population.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "networks/low_rank.h"
#include "population/perturb_chains.h"
#include "population/slot_blocks.h"

namespace neuroevo {

namespace {

// Weights per task: a row's chunk stays in the L2 cache while a chain of mutations is applied to it.
constexpr int64_t kChunk = 1 << 15;

}  // namespace

HostPopulation::HostPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank,
                               int64_t float_rows)
    : FloatPopulation(std::move(networks), rows, std::move(pool), rank, float_rows),
      memories_(rows, [this] { return MakeSlotMemory(); }) {
  constexpr int64_t kFloat = sizeof(float);
  int64_t longest = 0, floats = 0, member = 0;
  for (const Network& network : networks_) {
    longest = std::max(longest, network.dimension());
    floats = std::max(floats, network.row_size());
    if (members_.count() == 0) continue;
    member = std::max(member, network.member_size(rank));
    member_layers_.push_back(network.member_layers(rank));
  }
  chunks_ = (longest + kChunk - 1) / kChunk;
  memory_ = std::make_unique<RowMemory>(members_.weight_rows(), floats * kFloat, longest);
  if (members_.count() > 0) member_memory_ = std::make_unique<RowMemory>(members_.count(), member * kFloat, member);
  if (recurrent()) states_ = std::make_unique<RowMemory>(rows_, state_size_ * kFloat, state_size_);
}

int64_t HostPopulation::Bytes(int64_t weight_rows) const {
  int64_t bytes = memory_->bytes(std::min(weight_rows, members_.weight_rows()));
  if (member_memory_) bytes += member_memory_->bytes(members_.count());
  if (states_) bytes += states_->bytes(rows_);
  return bytes;
}

RowWeights HostPopulation::WeightsOf(int64_t row) const {
  if (!members_.Is(row)) return {Row(row), Row(row)};
  const Members::Member& member = members_.Of(row);
  return {Row(member.center), Row(row), low_rank::Factor(member.scale, members_.rank())};
}

void HostPopulation::InitChunk(int64_t row, uint64_t seed, int64_t begin, int64_t end) {
  for (const Layer& layer : NetworkOf(row).layers()) {
    const int64_t from = std::max(begin, layer.offset), to = std::min(end, layer.offset + layer.weights);
    if (from >= to) continue;
    if (layer.init_scale == 0) {
      std::fill(Row(row) + from, Row(row) + to, 0.0f);
    } else {
      AddNoiseTo(seed, from, to - from, layer.init_scale, nullptr, Row(row) + from, nullptr);
    }
  }
}

void HostPopulation::DoInit(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) {
  const int64_t tasks = chunks_ * static_cast<int64_t>(rows.size());
  pool_->ParallelFor(tasks, [&](int64_t task) {
    const int64_t row = rows[task / chunks_], begin = task % chunks_ * kChunk;
    InitChunk(row, seeds[task / chunks_], begin, std::min(begin + kChunk, NetworkOf(row).dimension()));
  });
}

void HostPopulation::DoAssign(const std::vector<int64_t>& rows, const float* thetas, int64_t stride) {
  const int64_t tasks = chunks_ * static_cast<int64_t>(rows.size());
  pool_->ParallelFor(tasks, [&](int64_t task) {
    const int64_t i = task / chunks_, begin = task % chunks_ * kChunk;
    const int64_t count = std::min(kChunk, NetworkOf(rows[i]).dimension() - begin);
    if (count > 0) memcpy(Row(rows[i]) + begin, thetas + i * stride + begin, count * sizeof(float));
  });
}

void HostPopulation::DoRead(const std::vector<int64_t>& rows, float* out, int64_t stride) {
  const int64_t tasks = chunks_ * static_cast<int64_t>(rows.size());
  pool_->ParallelFor(tasks, [&](int64_t task) {
    const int64_t i = task / chunks_, begin = task % chunks_ * kChunk;
    if (members_.Is(rows[i])) {
      if (begin != 0) return;
      const Members::Member& member = members_.Of(rows[i]);
      return low_rank::Materialize(NetworkOf(rows[i]), LayersOf(row_network_[rows[i]], true), Row(member.center),
                                   Row(rows[i]), member.scale, out + i * stride);
    }
    const int64_t count = std::min(kChunk, NetworkOf(rows[i]).dimension() - begin);
    if (count > 0) memcpy(out + i * stride + begin, Row(rows[i]) + begin, count * sizeof(float));
  });
}

void HostPopulation::DoPerturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src,
                               const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds,
                               const std::vector<float>& scale, const std::vector<int64_t>& spreads) {
  const std::vector<std::vector<int32_t>> chains = PerturbChains(dst, src);
  const int64_t tasks = chunks_ * static_cast<int64_t>(chains.size());
  // A weight depends only on the weights at the same position of other rows, so a task processes one chunk of positions
  // for a whole chain. Neighboring tasks process the same chunk of different chains, which often share their parents.
  pool_->ParallelFor(tasks, [&](int64_t task) {
    const auto& chain = chains[task % static_cast<int64_t>(chains.size())];
    const int64_t begin = task / static_cast<int64_t>(chains.size()) * kChunk;
    for (int32_t i : chain) {
      const int64_t count = std::min(kChunk, networks_[network[i]].dimension() - begin);
      if (count <= 0) continue;
      const float* spread = spreads[i] < 0 ? nullptr : Row(spreads[i]) + begin;
      AddNoiseTo(seeds[i], begin, count, scale[i], Row(src[i]) + begin, Row(dst[i]) + begin, spread);
    }
  });
}

void HostPopulation::DoPerturbMembers(const std::vector<int64_t>& rows, const std::vector<uint64_t>& seeds) {
  pool_->ParallelFor(static_cast<int64_t>(rows.size()), [&](int64_t i) {
    const Members::Member& member = members_.Of(rows[i]);
    const std::vector<Layer>& layers = LayersOf(row_network_[rows[i]], true);
    const float* center = Row(member.center);
    float* values = Row(rows[i]);
    for (size_t l = 0; l < layers.size(); ++l) {
      const Layer& layer = layers[l];
      if (layer.matrix()) {
        const int64_t count = layer.rank * (layer.inputs() + layer.out[2]);
        AddNoiseTo(seeds[i], layer.factors, count, 1.0f, nullptr, values + layer.factors, nullptr);
      } else if (layer.weights > 0) {
        AddNoiseTo(seeds[i], layer.offset, layer.weights, member.scale, center + NetworkOf(rows[i]).layers()[l].offset,
                   values + layer.offset, nullptr);
      }
    }
  });
}

void HostPopulation::DoReadStatistics(int64_t row, float* out, int64_t n) {
  const Network& network = NetworkOf(row);
  std::copy_n(Row(row) + (members_.Is(row) ? network.factors(rank()) : network.dimension()), n, out);
}

void HostPopulation::DoForward(const std::vector<int64_t>& rows, const void* observations, float* out,
                               const std::vector<int64_t>& states) {
  // Members of one center share its weight reads, but not with the center itself, whose layers have other offsets.
  std::vector<int64_t> shared = rows;
  for (int64_t& row : shared) {
    if (members_.Is(row)) row = rows_ + members_.Of(row).center;
  }
  const SlotBlocks slots(shared, pool_->FreeThreads(), kMaxSlots);
  const int64_t tasks = static_cast<int64_t>(slots.blocks.size());
  pool_->ParallelFor(tasks, [&](int64_t task) {
    const SlotBlock& block = slots.blocks[task];
    const int64_t first = rows[slots.order[block.first]];
    const void* block_observations[kMaxSlots];
    float *block_outs[kMaxSlots], *block_states[kMaxSlots];
    RowWeights weights[kMaxSlots];
    SlotMemory* memories[kMaxSlots] = {};
    slots.Places(block, NetworkOf(first), observations, out, block_observations, block_outs);
    for (int s = 0; s < block.slots; ++s) {
      const int64_t slot = slots.order[block.first + s];
      weights[s] = WeightsOf(rows[slot]);
      if (states.empty()) continue;
      if (recurrent()) block_states[s] = reinterpret_cast<float*>(states_->Row(states[slot]));
      memories[s] = memories_.Lend(states[slot], Content(rows[slot]));
    }
    Evaluate(row_network_[first], members_.Is(first), weights, block.slots, block_observations,
             recurrent() ? block_states : nullptr, memories, block_outs);
    for (int s = 0; s < block.slots; ++s) {
      SlotMemories::Keep(memories[s], Content(rows[slots.order[block.first + s]]));
    }
  });
}

void HostPopulation::DoClearStates(const std::vector<int64_t>& states) {
  for (int64_t state : states) memset(states_->Row(state), 0, state_size_ * sizeof(float));
}

}  // namespace neuroevo
