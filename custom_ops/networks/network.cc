// Parses the text of a network; the grammar is in network.h.
#include "networks/network.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace neuroevo {

namespace {

// Far beyond any network that evolves, and small enough that no product below overflows.
constexpr int64_t kMaxValues = int64_t{1} << 28;   // per observation or activation
constexpr int64_t kMaxWeights = int64_t{1} << 32;  // per network

std::vector<std::string> SplitLayers(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != ';') continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  // A semicolon after the last layer is fine.
  if (parts.size() > 1 && parts.back().find_first_not_of(" \t\n") == std::string::npos) parts.pop_back();
  return parts;
}

// The words of one layer, with its place for error messages.
class Words {
 public:
  Words(int index, const std::string& text) : index_(index) {
    std::istringstream in(text);
    for (std::string word; in >> word;) {
      words_.push_back(word);
      text_ += (text_.empty() ? "" : " ") + word;
    }
    if (words_.empty()) Throw("is empty, expected input, conv, dense, bias, relu, tanh or vbn");
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
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 1 || value > kMaxValues) {
      Throw(what, " is '", word, "', expected an integer in [1, ", kMaxValues, "]");
    }
    return value;
  }

  double Deviation(size_t i) const {
    const std::string& word = words_[i];
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value) || value < 0 || value > 1e6) {
      Throw("the initial standard deviation is '", word, "', expected a number in [0, 1e6]");
    }
    return value;
  }

 private:
  int index_;
  std::string text_;
  std::vector<std::string> words_;
};

struct Padding {
  int out, before;
};

// TensorFlow: with SAME, ceil(in / stride) outputs, and of an odd number of zeros the extra one comes last.
Padding Pad(bool same, int in, int kernel, int stride) {
  if (!same) return {(in - kernel) / stride + 1, 0};
  const int out = (in - 1) / stride + 1;
  const int64_t zeros = (int64_t{out} - 1) * stride + kernel - in;
  return {out, static_cast<int>(zeros > 0 ? zeros / 2 : 0)};
}

void ParseConv(const Words& words, bool image, Layer* layer) {
  words.Expect(7, "conv FILTERS KH KW STRIDE same|valid STD");
  if (!image) words.Throw("needs an input of height, width and channels, found a flat vector");
  layer->kind = Layer::Kind::kConv;
  const int filters = words.Positive(1, "the number of filters");
  layer->kernel_h = words.Positive(2, "the kernel's height");
  layer->kernel_w = words.Positive(3, "the kernel's width");
  layer->stride = words.Positive(4, "the stride");
  if (words[5] != "same" && words[5] != "valid") words.Throw("padding is '", words[5], "', expected same or valid");
  const bool same = words[5] == "same";
  const auto& in = layer->in;
  if (!same && (layer->kernel_h > in[0] || layer->kernel_w > in[1])) {
    words.Throw("a valid kernel of ", layer->kernel_h, "x", layer->kernel_w, " does not fit its input of ", in[0], "x",
                in[1]);
  }
  const Padding vertical = Pad(same, in[0], layer->kernel_h, layer->stride);
  const Padding horizontal = Pad(same, in[1], layer->kernel_w, layer->stride);
  layer->pad_top = vertical.before;
  layer->pad_left = horizontal.before;
  layer->out = {vertical.out, horizontal.out, filters};
  // The padded input is held in memory too.
  const double padded = (double(in[0]) + layer->kernel_h) * (double(in[1]) + layer->kernel_w) * in[2];
  const double fan_in = double(layer->kernel_h) * layer->kernel_w * in[2];
  if (padded > kMaxValues || fan_in > kMaxValues || double(vertical.out) * horizontal.out * filters > kMaxValues) {
    words.Throw("is too large: an activation may have ", kMaxValues, " values");
  }
  if (fan_in * filters > kMaxWeights) words.Throw("is too large: a network may have ", kMaxWeights, " weights");
  layer->weights = static_cast<int64_t>(fan_in) * filters;
  layer->init_scale = static_cast<float>(words.Deviation(6) / std::sqrt(fan_in));
}

void ParseDense(const Words& words, Layer* layer) {
  words.Expect(3, "dense UNITS STD");
  layer->kind = Layer::Kind::kDense;
  const int units = words.Positive(1, "the number of units");
  const int64_t fan_in = ValuesOf(layer->in);
  layer->out = {1, 1, units};
  if (double(fan_in) * units > kMaxWeights) words.Throw("is too large: a network may have ", kMaxWeights, " weights");
  layer->weights = fan_in * units;
  layer->init_scale = static_cast<float>(words.Deviation(2) / std::sqrt(static_cast<double>(fan_in)));
}

}  // namespace

Network Network::Parse(const std::string& text) {
  Network network;
  network.text_ = text;
  const std::vector<std::string> parts = SplitLayers(text);

  const Words input(0, parts[0]);
  if (input[0] != "input") input.Throw("expected input uint8|float32 DIM... as the first layer");
  if (input.size() < 3) input.Throw("has ", input.size(), " words, expected at least 3: input uint8|float32 DIM...");
  if (input[1] != "uint8" && input[1] != "float32") {
    input.Throw("the input's type is '", input[1], "', expected uint8 or float32");
  }
  network.input_dtype_ = input[1] == "uint8" ? DType::kUint8 : DType::kFloat32;
  int64_t size = 1;
  for (size_t i = 2; i < input.size(); ++i) {
    network.input_shape_.push_back(input.Positive(i, "a dimension"));
    size *= network.input_shape_.back();
    if (size > kMaxValues) input.Throw("is too large: an observation may have ", kMaxValues, " values");
  }
  network.input_size_ = size;

  const std::vector<int>& dims = network.input_shape_;
  bool image = dims.size() == 3;
  std::array<int, 3> shape = {1, static_cast<int>(size / dims.back()), dims.back()};
  if (image) shape = {dims[0], dims[1], dims[2]};
  for (size_t i = 1; i < parts.size(); ++i) {
    const Words words(static_cast<int>(i), parts[i]);
    Layer layer;
    layer.in = layer.out = shape;
    layer.offset = network.dimension_;
    if (words[0] == "conv") {
      ParseConv(words, image, &layer);
    } else if (words[0] == "dense") {
      ParseDense(words, &layer);
      image = false;
    } else if (words[0] == "bias") {
      words.Expect(1, "bias");
      layer.kind = Layer::Kind::kBias;
      layer.weights = shape[2];
    } else if (words[0] == "relu" || words[0] == "tanh" || words[0] == "vbn") {
      words.Expect(1, words[0].c_str());
      layer.kind = words[0] == "relu"   ? Layer::Kind::kRelu
                   : words[0] == "tanh" ? Layer::Kind::kTanh
                                        : Layer::Kind::kVbn;
    } else if (words[0] == "input") {
      words.Throw("input may only be the first layer");
    } else {
      words.Throw("'", words[0], "' is not a layer, expected conv, dense, bias, relu, tanh or vbn");
    }
    network.dimension_ += layer.weights;
    if (network.dimension_ > kMaxWeights) words.Throw("is too large: a network may have ", kMaxWeights, " weights");
    shape = layer.out;
    network.layers_.push_back(layer);
  }
  if (network.dimension_ == 0) {
    ThrowInvalid("network '", text, "' has no weights, expected a conv, dense or bias layer");
  }
  network.output_size_ = static_cast<int>(ValuesOf(shape));
  network.row_size_ = network.dimension_;
  for (Layer& layer : network.layers_) {
    if (layer.kind != Layer::Kind::kVbn) continue;
    layer.statistics = network.row_size_;
    network.row_size_ += 2 * int64_t{layer.out[2]};
    if (network.row_size_ > kMaxWeights)
      ThrowInvalid("network '", text, "' is too large for the statistics of its vbn");
  }
  return network;
}

}  // namespace neuroevo
