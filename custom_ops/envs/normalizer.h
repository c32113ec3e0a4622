// Normalization of observations by a mean and a standard deviation of every value, as the code of OpenAI's evolution
// strategies has it (Salimans et al. 2017), and the sums of what an episode saw, from which the next one is made.
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

  // mean, std: of every value of an observation. Throws unless all are finite and every std is above 0.
  Normalizer(std::vector<double> mean, std::vector<double> std);

  int64_t size() const { return static_cast<int64_t>(mean_.size()); }
  bool operator==(const Normalizer& other) const { return mean_ == other.mean_ && std_ == other.std_; }

  // out[i] = float32(clip((x[i] - mean[i]) / std[i], -5, 5)), in float64 and with a division, as NumPy would have it.
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

// How many observations were seen, and the sums and sums of squares of their n values, in the order they came.
class ObservationSums {
 public:
  static int64_t Size(int64_t n) { return 1 + 2 * n; }

  // Forgets what was seen. Allocates only the first time.
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

// The normalizers of an env pool by number. One that is dropped lives on where it is used. Any thread may call.
class Normalizers {
 public:
  // Throws for a negative number, and for one that stands for other values.
  void Set(int64_t number, std::shared_ptr<const Normalizer> normalizer);
  // Throws, dropping none, if one of the numbers is not set.
  void Drop(const std::vector<int64_t>& numbers);
  // Those of the numbers, null for -1. Throws if one is not set.
  std::vector<std::shared_ptr<const Normalizer>> Find(const std::vector<int64_t>& numbers) const;

 private:
  mutable std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<const Normalizer>> by_number_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_NORMALIZER_H_
