// Words of one layer in a network's text, and the size limits of networks.
#ifndef NEUROEVO_NETWORKS_LAYER_WORDS_H_
#define NEUROEVO_NETWORKS_LAYER_WORDS_H_

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace neuroevo {

// Far larger than any practical network, and small enough that no product below overflows.
inline constexpr int64_t kMaxValues = int64_t{1} << 28;   // per observation or activation
inline constexpr int64_t kMaxWeights = int64_t{1} << 32;  // per network

inline constexpr char kLayerNames[] =
    "conv, dense, bias, relu, tanh, silu, gelu, leaky_relu, max_pool, avg_pool, layer_norm, vbn, lstm or graph";

// Parse the whole word as a number; return false if it is not a number in the type's range.
template <class Number>
bool ParseNumber(std::string_view word, Number* value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && end == word.data() + word.size();
}

// Words of one layer, with its index for error messages.
class LayerWords {
 public:
  LayerWords(int index, const std::string& text) : index_(index) {
    for (std::string& word : SplitWords(text)) {
      text_ += (text_.empty() ? "" : " ") + word;
      words_.push_back(std::move(word));
    }
    if (words_.empty()) Throw("is empty, expected input, ", kLayerNames);
  }

  size_t size() const { return words_.size(); }
  const std::string& operator[](size_t i) const { return words_[i]; }

  template <class... Parts>
  [[noreturn]] void Throw(const Parts&... parts) const {
    ThrowInvalid("network layer ", index_, " '", text_, "': ", parts...);
  }

  void Expect(size_t size, const char* form) const {
    if (words_.size() != size) Throw("has ", words_.size(), " words, expected ", size, ": ", form);
  }

  int Positive(size_t i, const char* what) const {
    const std::string& word = words_[i];
    int value = 0;
    if (!ParseNumber(word, &value) || value < 1 || value > kMaxValues) {
      Throw(what, " is '", word, "', expected an integer in [1, ", kMaxValues, "]");
    }
    return value;
  }

  double Deviation(size_t i) const { return Number(i, "the initial standard deviation"); }

  double Number(size_t i, const char* what) const {
    const std::string& word = words_[i];
    double value = 0;
    if (!ParseNumber(word, &value) || !std::isfinite(value) || value < 0 || value > 1e6) {
      Throw(what, " is '", word, "', expected a number in [0, 1e6]");
    }
    return value;
  }

 private:
  int index_;
  std::string text_;
  std::vector<std::string> words_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_NETWORKS_LAYER_WORDS_H_
