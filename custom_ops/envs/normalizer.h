// Normalization of observations by the mean and standard deviation of each value, as in the code of OpenAI's evolution
// strategies (Salimans et al. 2017), and sums of an episode's observations, from which the next normalizer is computed.
#ifndef NEUROEVO_ENVS_NORMALIZER_H_
#define NEUROEVO_ENVS_NORMALIZER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace neuroevo {

class Normalizer {
 public:
  static constexpr double kClip = 5;

  // mean, std: of each value of an observation. Throws unless all are finite and every std is above 0.
  Normalizer(std::vector<double> mean, std::vector<double> std);

  int64_t size() const { return static_cast<int64_t>(mean_.size()); }
  bool operator==(const Normalizer& other) const { return mean_ == other.mean_ && std_ == other.std_; }

  // out[i] = float32(clip((x[i] - mean[i]) / std[i], -5, 5)), in float64 and with a division, bit-identical to NumPy.
  template <class T>
  void Apply(const T* x, float* out) const {
    for (size_t i = 0; i < mean_.size(); ++i) {
      const double value = (static_cast<double>(x[i]) - mean_[i]) / std_[i];
      out[i] = static_cast<float>(value < -kClip ? -kClip : value > kClip ? kClip : value);
    }
  }

 private:
  std::vector<double> mean_, std_;
};

// Number of observations, and the sums and sums of squares of their n values, accumulated in order.
class ObservationSums {
 public:
  static int64_t Size(int64_t n) { return 1 + 2 * n; }

  // Reset all sums. Allocates only the first time.
  void Start(int64_t n) { values_.assign(Size(n), 0); }

  template <class T>
  void Add(const T* x) {
    const size_t n = values_.size() / 2;
    double *sums = values_.data() + 1, *squares = sums + n;
    values_[0] += 1;
    for (size_t i = 0; i < n; ++i) {
      const double value = static_cast<double>(x[i]);
      sums[i] += value;
      squares[i] += value * value;
    }
  }

  // [1 + 2n]: the count, the sums, the sums of squares.
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
};

// Registry of an env pool's normalizers by number. Dropped normalizers remain alive while in use. Thread-safe.
class Normalizers {
 public:
  // Throws for a negative number, and for a number that is set to different values.
  void Set(int64_t number, std::shared_ptr<const Normalizer> normalizer);
  // Throws without dropping any if one of the numbers is not set.
  void Drop(const std::vector<int64_t>& numbers);
  // Return the normalizers of the numbers, null for -1. Throws if a number is not set.
  std::vector<std::shared_ptr<const Normalizer>> Find(const std::vector<int64_t>& numbers) const;

 private:
  mutable std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<const Normalizer>> by_number_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_NORMALIZER_H_
