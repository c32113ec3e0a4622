#include "population/host_population.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/error.h"

namespace neuroevo {

namespace {

// Weights per task: a row's chunk stays in the L2 cache while a chain of mutations goes over it.
constexpr int64_t kChunk = 1 << 15;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Gives each entry of a Perturb call its chain: entries of different chains share no row that any of them writes, so
// chains may run in any order. Returns the entries of each chain in list order.
std::vector<std::vector<int32_t>> Chains(const std::vector<int64_t>& dst, const std::vector<int64_t>& src) {
  std::unordered_map<int64_t, int32_t> writer;  // row -> an entry that writes it
  std::vector<int32_t> parent(dst.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int32_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (size_t i = 0; i < dst.size(); ++i) {
    const auto [it, first] = writer.emplace(dst[i], static_cast<int32_t>(i));
    if (!first) parent[root(static_cast<int32_t>(i))] = root(it->second);
  }
  for (size_t i = 0; i < src.size(); ++i) {
    const auto it = writer.find(src[i]);
    if (it != writer.end()) parent[root(static_cast<int32_t>(i))] = root(it->second);
  }
  std::vector<std::vector<int32_t>> chains;
  std::unordered_map<int32_t, size_t> index;
  for (size_t i = 0; i < dst.size(); ++i) {
    const auto [it, first] = index.emplace(root(static_cast<int32_t>(i)), chains.size());
    if (first) chains.emplace_back();
    chains[it->second].push_back(static_cast<int32_t>(i));
  }
  return chains;
}

}  // namespace

HostPopulation::HostPopulation(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool)
    : Population(std::move(networks), rows, std::move(pool)) {
  int64_t longest = 0;
  for (const Network& network : networks_) longest = std::max(longest, network.dimension());
  chunks_ = (longest + kChunk - 1) / kChunk;
  const int64_t bytes = longest * static_cast<int64_t>(sizeof(float)) + kSlack;
  // Long rows start in different cache sets: the extra line keeps the pitch from being a multiple of the page size.
  pitch_ = bytes < 4096 ? RoundUp(bytes, 64) : RoundUp(bytes, 4096) + 64;
  const double total = static_cast<double>(pitch_) * static_cast<double>(rows_);
  void* memory = MAP_FAILED;
  errno = ENOMEM;
  if (total < 0x1p46) {
    memory = mmap(nullptr, pitch_ * rows_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (memory == MAP_FAILED) {
    ThrowInvalid("cannot map ", total * 0x1p-30, " GiB for ", rows_, " rows of ", longest,
                 " weights: ", std::strerror(errno));
  }
  memory_ = static_cast<char*>(memory);
  // Huge pages spare the forward pass most of its address translations; without them it is only slower.
  (void)madvise(memory, pitch_ * rows_, MADV_HUGEPAGE);
}

HostPopulation::~HostPopulation() {
  if (memory_ != nullptr) munmap(memory_, pitch_ * rows_);
}

void HostPopulation::InitChunk(int64_t row, uint64_t seed, int64_t begin, int64_t end) {
  for (const Layer& layer : NetworkOf(row).layers()) {
    const int64_t from = std::max(begin, layer.offset), to = std::min(end, layer.offset + layer.weights);
    if (from >= to) continue;
    if (layer.init_scale == 0) {
      std::fill(Row(row) + from, Row(row) + to, 0.0f);
    } else {
      AddNoiseTo(seed, from, to - from, layer.init_scale, nullptr, Row(row) + from);
    }
  }
}

void HostPopulation::DoInit(std::vector<int64_t> rows, std::vector<uint64_t> seeds, Done done) {
  const int64_t tasks = chunks_ * static_cast<int64_t>(rows.size());
  pool_->ParallelForAsync(
      tasks,
      [this, rows = std::move(rows), seeds = std::move(seeds)](int64_t task) {
        const int64_t row = rows[task / chunks_], begin = task % chunks_ * kChunk;
        InitChunk(row, seeds[task / chunks_], begin, std::min(begin + kChunk, NetworkOf(row).dimension()));
      },
      std::move(done));
}

void HostPopulation::DoAssign(std::vector<int64_t> rows, const float* thetas, int64_t stride, Done done) {
  const int64_t tasks = chunks_ * static_cast<int64_t>(rows.size());
  pool_->ParallelForAsync(
      tasks,
      [this, rows = std::move(rows), thetas, stride](int64_t task) {
        const int64_t i = task / chunks_, begin = task % chunks_ * kChunk;
        const int64_t count = std::min(kChunk, NetworkOf(rows[i]).dimension() - begin);
        if (count > 0) memcpy(Row(rows[i]) + begin, thetas + i * stride + begin, count * sizeof(float));
      },
      std::move(done));
}

void HostPopulation::DoRead(std::vector<int64_t> rows, float* out, int64_t stride, Done done) {
  const int64_t tasks = chunks_ * static_cast<int64_t>(rows.size());
  pool_->ParallelForAsync(
      tasks,
      [this, rows = std::move(rows), out, stride](int64_t task) {
        const int64_t i = task / chunks_, begin = task % chunks_ * kChunk;
        const int64_t count = std::min(kChunk, NetworkOf(rows[i]).dimension() - begin);
        if (count > 0) memcpy(out + i * stride + begin, Row(rows[i]) + begin, count * sizeof(float));
      },
      std::move(done));
}

void HostPopulation::DoPerturb(std::vector<int64_t> dst, std::vector<int64_t> src, std::vector<int32_t> network,
                               std::vector<uint64_t> seeds, std::vector<float> scale, Done done) {
  std::vector<std::vector<int32_t>> chains = Chains(dst, src);
  const int64_t tasks = chunks_ * static_cast<int64_t>(chains.size());
  // A weight of a row depends on the same weight of other rows only, so a task takes one chunk of positions through a
  // whole chain. Neighbouring tasks take the same chunk of different chains, whose parents are often the same.
  pool_->ParallelForAsync(
      tasks,
      [this, dst = std::move(dst), src = std::move(src), network = std::move(network), seeds = std::move(seeds),
       scale = std::move(scale), chains = std::move(chains)](int64_t task) {
        const auto& chain = chains[task % static_cast<int64_t>(chains.size())];
        const int64_t begin = task / static_cast<int64_t>(chains.size()) * kChunk;
        for (int32_t i : chain) {
          const int64_t count = std::min(kChunk, networks_[network[i]].dimension() - begin);
          if (count > 0) AddNoiseTo(seeds[i], begin, count, scale[i], Row(src[i]) + begin, Row(dst[i]) + begin);
        }
      },
      std::move(done));
}

void HostPopulation::DoForward(std::vector<int64_t> rows, const void* observations, float* out, Done done) {
  // Slots sorted by row, and cut into blocks of one row each. Blocks are smaller than kMaxSlots where otherwise
  // workers would stay idle; how slots are grouped changes no result.
  struct Block {
    int64_t first;
    int slots;
  };
  const int64_t k = static_cast<int64_t>(rows.size());
  std::vector<int64_t> order(k);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows[a] < rows[b]; });
  const int most = static_cast<int>(
      std::min<int64_t>(kMaxSlots, std::max<int64_t>(1, (k + pool_->threads() - 1) / pool_->threads())));
  std::vector<Block> blocks;
  for (int64_t i = 0; i < k; ++i) {
    if (i > 0 && rows[order[i]] == rows[order[i - 1]] && blocks.back().slots < most) {
      ++blocks.back().slots;
    } else {
      blocks.push_back({i, 1});
    }
  }
  const int64_t tasks = static_cast<int64_t>(blocks.size());
  pool_->ParallelForAsync(
      tasks,
      [this, rows = std::move(rows), order = std::move(order), blocks = std::move(blocks), observations,
       out](int64_t task) {
        const Block& block = blocks[task];
        const int64_t row = rows[order[block.first]];
        const int network = row_network_[row];
        const int64_t observation_bytes =
            networks_[network].input_size() * static_cast<int64_t>(SizeOf(networks_[network].input_dtype()));
        const void* block_observations[kMaxSlots];
        float* block_outs[kMaxSlots];
        for (int s = 0; s < block.slots; ++s) {
          const int64_t slot = order[block.first + s];
          block_observations[s] = static_cast<const char*>(observations) + slot * observation_bytes;
          block_outs[s] = out + slot * networks_[network].output_size();
        }
        Evaluate(network, Row(row), block.slots, block_observations, block_outs);
      },
      std::move(done));
}

}  // namespace neuroevo
