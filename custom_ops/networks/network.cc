// Parser of a network's text; network.h describes the grammar.
#include "networks/network.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "networks/graph_layer.h"
#include "networks/layer_words.h"

namespace neuroevo {

namespace {

// Layers that consist of one word.
constexpr std::pair<const char*, Layer::Kind> kPlain[] = {
    {"relu", Layer::Kind::kRelu}, {"tanh", Layer::Kind::kTanh}, {"silu", Layer::Kind::kSilu},
    {"gelu", Layer::Kind::kGelu}, {"vbn", Layer::Kind::kVbn},   {"layer_norm", Layer::Kind::kLayerNorm}};

std::vector<std::string> SplitLayers(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != ';') continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  // A trailing semicolon is allowed.
  if (parts.size() > 1 && parts.back().find_first_not_of(" \t\n") == std::string::npos) parts.pop_back();
  return parts;
}

struct Padding {
  int out, before;
};

// TensorFlow's padding: SAME has ceil(in / stride) outputs, and an odd number of zeros has the extra zero at the end.
Padding Pad(bool same, int in, int kernel, int stride) {
  if (!same) return {(in - kernel) / stride + 1, 0};
  const int out = (in - 1) / stride + 1;
  const int64_t zeros = (int64_t{out} - 1) * stride + kernel - in;
  return {out, static_cast<int>(zeros > 0 ? zeros / 2 : 0)};
}

// Parse the words from `first` on, KH KW STRIDE same|valid, of a layer with `channels` output channels.
void ParseWindows(const LayerWords& words, size_t first, bool image, int channels, Layer* layer) {
  if (!image) words.Throw("needs an input of height, width and channels, found a flat vector");
  layer->kernel_h = words.Positive(first, "the kernel's height");
  layer->kernel_w = words.Positive(first + 1, "the kernel's width");
  layer->stride = words.Positive(first + 2, "the stride");
  const std::string& padding = words[first + 3];
  if (padding != "same" && padding != "valid") words.Throw("padding is '", padding, "', expected same or valid");
  const bool same = padding == "same";
  const auto& in = layer->in;
  if (!same && (layer->kernel_h > in[0] || layer->kernel_w > in[1])) {
    words.Throw("a valid kernel of ", layer->kernel_h, "x", layer->kernel_w, " does not fit its input of ", in[0], "x",
                in[1]);
  }
  const Padding vertical = Pad(same, in[0], layer->kernel_h, layer->stride);
  const Padding horizontal = Pad(same, in[1], layer->kernel_w, layer->stride);
  layer->pad_top = vertical.before;
  layer->pad_left = horizontal.before;
  layer->out = {vertical.out, horizontal.out, channels};
  // The padded input is stored in memory too.
  const double padded = (double(in[0]) + layer->kernel_h) * (double(in[1]) + layer->kernel_w) * in[2];
  const double window = double(layer->kernel_h) * layer->kernel_w * in[2];
  if (padded > kMaxValues || window > kMaxValues || double(vertical.out) * horizontal.out * channels > kMaxValues) {
    words.Throw("is too large: an activation may have ", kMaxValues, " values");
  }
}

void ParseConv(const LayerWords& words, bool image, Layer* layer) {
  words.Expect(7, "conv FILTERS KH KW STRIDE same|valid STD");
  layer->kind = Layer::Kind::kConv;
  const int filters = words.Positive(1, "the number of filters");
  ParseWindows(words, 2, image, filters, layer);
  const double fan_in = double(layer->kernel_h) * layer->kernel_w * layer->in[2];
  if (fan_in * filters > kMaxWeights) words.Throw("is too large: a network may have ", kMaxWeights, " weights");
  layer->weights = static_cast<int64_t>(fan_in) * filters;
  layer->init_scale = static_cast<float>(words.Deviation(6) / std::sqrt(fan_in));
}

void ParsePool(const LayerWords& words, bool image, Layer* layer) {
  words.Expect(5, "max_pool|avg_pool KH KW STRIDE same|valid");
  layer->kind = words[0] == "max_pool" ? Layer::Kind::kMaxPool : Layer::Kind::kAvgPool;
  ParseWindows(words, 1, image, layer->in[2], layer);
}

// Set the weights of a dense layer with `units` units; STD is the third word.
void MakeDense(const LayerWords& words, int units, Layer* layer) {
  layer->kind = Layer::Kind::kDense;
  const int64_t fan_in = ValuesOf(layer->in);
  layer->out = {1, 1, units};
  if (double(fan_in) * units > kMaxWeights) words.Throw("is too large: a network may have ", kMaxWeights, " weights");
  layer->weights = fan_in * units;
  layer->init_scale = static_cast<float>(words.Deviation(2) / std::sqrt(static_cast<double>(fan_in)));
}

// Return the layers of an lstm with input shape `in`; their offsets in theta and in the state are not yet set.
std::vector<Layer> ParseLstm(const LayerWords& words, const std::array<int, 3>& in) {
  words.Expect(3, "lstm UNITS STD");
  const int units = words.Positive(1, "the number of units");
  const int64_t joined = ValuesOf(in) + units, gates = int64_t{4} * units;
  if (joined > kMaxValues || gates > kMaxValues) {
    words.Throw("is too large: an activation may have ", kMaxValues, " values");
  }
  Layer recall, dense, bias, cell;
  recall.kind = Layer::Kind::kRecall;
  recall.in = in;
  recall.out = dense.in = {1, 1, static_cast<int>(joined)};
  MakeDense(words, static_cast<int>(gates), &dense);
  bias.kind = Layer::Kind::kBias;
  bias.in = bias.out = cell.in = dense.out;
  bias.weights = gates;
  cell.kind = Layer::Kind::kCell;
  cell.out = {1, 1, units};
  return {recall, dense, bias, cell};
}

}  // namespace

const char* NameOf(Layer::Kind kind) {
  for (const auto& [name, plain] : kPlain) {
    if (plain == kind) return name;
  }
  switch (kind) {
    case Layer::Kind::kConv:
      return "conv";
    case Layer::Kind::kDense:
      return "dense";
    case Layer::Kind::kBias:
      return "bias";
    case Layer::Kind::kLeakyRelu:
      return "leaky_relu";
    case Layer::Kind::kMaxPool:
      return "max_pool";
    case Layer::Kind::kAvgPool:
      return "avg_pool";
    case Layer::Kind::kGraph:
      return "graph";
    default:
      return "lstm";
  }
}

Network Network::Parse(const std::string& text) {
  Network network;
  network.text_ = text;
  const std::vector<std::string> parts = SplitLayers(text);

  const LayerWords input(0, parts[0]);
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
    const LayerWords words(static_cast<int>(i), parts[i]);
    const std::string& name = words[0];
    const auto plain =
        std::find_if(std::begin(kPlain), std::end(kPlain), [&](auto& each) { return each.first == name; });
    Layer layer;
    layer.in = layer.out = shape;
    if (name == "conv") {
      ParseConv(words, image, &layer);
    } else if (name == "max_pool" || name == "avg_pool") {
      ParsePool(words, image, &layer);
    } else if (name == "dense") {
      words.Expect(3, "dense UNITS STD");
      MakeDense(words, words.Positive(1, "the number of units"), &layer);
      image = false;
    } else if (name == "graph") {
      ParseGraph(words, &layer);
      image = false;
    } else if (name == "bias") {
      words.Expect(1, "bias");
      layer.kind = Layer::Kind::kBias;
      layer.weights = shape[2];
    } else if (plain != std::end(kPlain)) {
      words.Expect(1, name.c_str());
      layer.kind = plain->second;
      if (layer.kind == Layer::Kind::kVbn && network.recurrent()) {
        words.Throw("may not follow lstm: the observations of the reference batch have no order");
      }
    } else if (name == "leaky_relu") {
      words.Expect(2, "leaky_relu SLOPE");
      layer.kind = Layer::Kind::kLeakyRelu;
      layer.slope = static_cast<float>(words.Number(1, "the slope"));
    } else if (name == "input") {
      words.Throw("input may only be the first layer");
    } else if (name != "lstm") {
      words.Throw("'", name, "' is not a layer, expected ", kLayerNames);
    }
    std::vector<Layer> made = {layer};
    if (name == "lstm") {
      made = ParseLstm(words, shape);
      made.front().state = made.back().state = network.state_size_;
      network.state_size_ += 2 * int64_t{made.back().out[2]};
      image = false;
    }
    for (Layer& each : made) {
      each.offset = network.dimension_;
      network.dimension_ += each.weights;
      if (network.dimension_ > kMaxWeights) words.Throw("is too large: a network may have ", kMaxWeights, " weights");
      network.layers_.push_back(each);
    }
    shape = made.back().out;
  }
  if (network.dimension_ == 0) {
    ThrowInvalid("network '", text, "' has no weights, expected a conv, dense, bias, lstm or graph layer");
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
