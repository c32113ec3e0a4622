// Time of each convolution and dense layer of a network, compared with its limit.
#ifndef NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_LAYER_TIMES_H_
#define NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_LAYER_TIMES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "machine.h"
#include "networks/network.h"

namespace neuroevo {

// Observations, uint8 [kImages, 84, 84, 4].
constexpr int kImages = 8;
constexpr int64_t kImageBytes = 84 * 84 * 4;

// The machine's limits so far. Slice() adds one measurement of each.
class Limits {
 public:
  Limits() : caches_(CacheSizes()), buffer_(std::max(int64_t{256} << 20, 8 * caches_.l3)) {
    levels_ = {{"L1", caches_.l1, {}}, {"L2", caches_.l2, {}}, {"L3", caches_.l3, {}}, {"memory", INT64_MAX, {}}};
  }

  void Slice() {
    fma_.push_back(FmaRate());
    for (Level& level : levels_) {
      const bool memory = level.size == INT64_MAX;
      const int64_t bytes = memory ? 4 << 20 : std::min<int64_t>(level.size / 4, 8 << 20);
      const int64_t begin = memory ? next_ : 0;
      if (memory) next_ = next_ + 2 * bytes > buffer_.bytes() ? 0 : next_ + bytes;
      if (!memory) ReadRate(buffer_, begin, bytes, 1, 0);
      const int times = static_cast<int>(std::max<int64_t>(1, (1 << 20) / bytes));
      level.rates[turn_].push_back(ReadRate(buffer_, begin, bytes, times, kAheads[turn_]));
    }
    turn_ = (turn_ + 1) % kWays;
  }

  double Fma() const { return Median(fma_); }  // billions of operations a second
  const std::string& LevelOf(int64_t bytes) const { return Find(bytes).name; }
  double ReadFrom(const std::string& name) const {  // gigabytes a second
    const Level& level = *std::find_if(levels_.begin(), levels_.end(), [&](const Level& l) { return l.name == name; });
    double best = 0;
    for (const std::vector<double>& rates : level.rates) best = std::max(best, Median(rates));
    return best;
  }
  std::vector<std::string> Levels() const {
    std::vector<std::string> names;
    for (const Level& level : levels_) names.push_back(level.name);
    return names;
  }
  const std::string& Memory() const { return levels_.back().name; }

 private:
  static constexpr int kWays = std::size(kAheads);
  struct Level {
    std::string name;
    int64_t size;
    std::array<std::vector<double>, kWays> rates;
  };
  const Level& Find(int64_t bytes) const {
    return *std::find_if(levels_.begin(), levels_.end(), [&](const Level& level) { return bytes <= level.size; });
  }

  Caches caches_;
  Buffer buffer_;
  std::vector<Level> levels_;
  std::vector<double> fma_;
  int64_t next_ = 0;
  int turn_ = 0;
};

// A layer's time and work, means over the images. A convolution may copy the outputs of a window that equals its left
// neighbor: `distinct` leaves the multiply-adds of such windows out.
struct LayerResult {
  std::string network, layer, weights_from;
  double microseconds, non_zero, multiply_adds, distinct, bytes;
  std::string limit = {};                // which binds
  double share = 0, distinct_share = 0;  // of the limit, with all multiply-adds as work and with the distinct ones
};

// Times each layer on the activations that the network's own layers before it make, with its weights in the nearest
// cache that they fit into and from memory; takes slices of the limits in between.
void TimeLayers(const char* name, const Network& network, const std::vector<uint8_t>& images, int repeats,
                Limits* limits, std::vector<LayerResult>* results);

// Fills in the limits and the shares, when all slices have been taken.
void FindLimits(const Limits& limits, std::vector<LayerResult>* results);

}  // namespace neuroevo

#endif  // NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_LAYER_TIMES_H_
