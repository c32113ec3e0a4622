// Network::Parse: the sizes of the published networks, TensorFlow's padding, and error messages.
#include "networks/network.h"

#include <cmath>
#include <string>

#include "core/error.h"
#include "native/check.h"

using neuroevo::DType;
using neuroevo::Layer;
using neuroevo::Network;

namespace {

const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";
const char kModel[] =
    "input uint8 84 84 4; conv 16 8 8 4 same 1.0; bias; relu; conv 32 4 4 2 same 1.0; bias; relu; "
    "dense 256 1.0; bias; relu; dense 18 0.1; bias";

void CheckConv(const std::string& text, int height, int width, int top, int left) {
  const Network network = Network::Parse(text);
  const Layer& layer = network.layers()[0];
  CHECK_EQ(layer.out[0], height);
  CHECK_EQ(layer.out[1], width);
  CHECK_EQ(layer.pad_top, top);
  CHECK_EQ(layer.pad_left, left);
}

}  // namespace

TEST(LargeModel) {
  const Network network = Network::Parse(kLargeModel);
  CHECK_EQ(network.dimension(), 4052658);
  CHECK_EQ(network.text(), std::string(kLargeModel));
  CHECK(network.input_dtype() == DType::kUint8);
  CHECK(network.input_shape() == std::vector<int>({84, 84, 4}));
  CHECK_EQ(network.input_size(), 84 * 84 * 4);
  CHECK_EQ(network.output_size(), 18);
  CHECK_EQ(network.layers().size(), size_t{14});
  const Layer& conv2 = network.layers()[3];
  CHECK(conv2.kind == Layer::Kind::kConv);
  CHECK((conv2.in == std::array<int, 3>{21, 21, 32}) && (conv2.out == std::array<int, 3>{11, 11, 64}));
  CHECK_EQ(conv2.offset, 8 * 8 * 4 * 32 + 32);
  CHECK_EQ(conv2.weights, 4 * 4 * 32 * 64);
  CHECK_EQ(conv2.init_scale, static_cast<float>(1 / std::sqrt(4.0 * 4 * 32)));
  const Layer& dense = network.layers()[9];
  CHECK(dense.kind == Layer::Kind::kDense);
  CHECK_EQ(dense.weights, 7744 * 512);
  CHECK(network.layers()[11].kind == Layer::Kind::kRelu);
  CHECK_EQ(network.layers()[10].init_scale, 0.0f);  // bias
  CHECK_EQ(network.layers().back().offset, 4052658 - 18);
}

TEST(SmallModel) { CHECK_EQ(Network::Parse(kModel).dimension(), 1008450); }

TEST(StatisticsLieBehindTheta) {
  const Network network = Network::Parse("input float32 5 4 3; vbn; conv 7 2 2 1 valid 1; vbn; bias; dense 2 1");
  const int64_t dimension = 2 * 2 * 3 * 7 + 7 + 4 * 3 * 7 * 2;
  CHECK_EQ(network.dimension(), dimension);
  CHECK_EQ(network.layers()[0].statistics, dimension);
  CHECK_EQ(network.layers()[2].statistics, dimension + 2 * 3);
  CHECK_EQ(network.row_size(), dimension + 2 * 3 + 2 * 7);
  CHECK(network.has_vbn());
  CHECK(!Network::Parse(kModel).has_vbn());
  CHECK_EQ(Network::Parse(kModel).row_size(), 1008450);
}

TEST(AnLstmIsThreeLayersAndHasAState) {
  const Network network = Network::Parse(
      "input float32 4 4 3; conv 5 2 2 2 same 1; relu; lstm 6 0.5; dense 3 1; tanh; lstm 2 1; dense 7 1");
  const int64_t conv = 2 * 2 * 3 * 5, inputs = 2 * 2 * 5, gates = (inputs + 6) * 24;
  CHECK_EQ(network.dimension(), conv + gates + 24 + 18 + 5 * 8 + 8 + 14);
  CHECK_EQ(network.state_size(), 2 * 6 + 2 * 2);
  CHECK(network.recurrent() && !Network::Parse(kModel).recurrent());
  const std::vector<Layer>& layers = network.layers();
  const Layer &recall = layers[2], &dense = layers[3], &bias = layers[4], &cell = layers[5];
  CHECK(recall.kind == Layer::Kind::kRecall && cell.kind == Layer::Kind::kCell);
  CHECK((recall.in == std::array<int, 3>{2, 2, 5}) && (recall.out == std::array<int, 3>{1, 1, 26}));
  CHECK(dense.kind == Layer::Kind::kDense && bias.kind == Layer::Kind::kBias);
  CHECK_EQ(dense.offset, conv);
  CHECK_EQ(dense.weights, gates);
  CHECK_EQ(dense.init_scale, static_cast<float>(0.5 / std::sqrt(26.0)));
  CHECK_EQ(bias.offset, conv + gates);
  CHECK_EQ(bias.init_scale, 0.0f);
  CHECK((cell.in == std::array<int, 3>{1, 1, 24}) && (cell.out == std::array<int, 3>{1, 1, 6}));
  CHECK_EQ(recall.state, 0);
  CHECK_EQ(cell.state, 0);
  CHECK_EQ(layers[8].state, 12);
  CHECK_EQ(layers[11].state, 12);
}

TEST(AGraphHasAWeightForEachEdgeAndABiasForEachUnit) {
  const Network network = Network::Parse("input float32 2 2; dense 3 1; graph 4 2 0.5 0>3 2>3 1>4 3>4 0>5 4>6; tanh");
  const Layer& graph = network.layers()[1];
  CHECK(graph.kind == Layer::Kind::kGraph);
  CHECK((graph.in == std::array<int, 3>{1, 1, 3}) && (graph.out == std::array<int, 3>{1, 1, 2}));
  CHECK_EQ(graph.offset, 4 * 3);
  CHECK_EQ(graph.weights, 6 + 4);
  CHECK_EQ(graph.init_scale, 0.5f);
  CHECK_EQ(graph.units, 4);
  CHECK_EQ(graph.edges.size(), size_t{6});
  CHECK(graph.edges[3].from == 3 && graph.edges[3].to == 4);
  CHECK_EQ(network.output_size(), 2);
  CHECK(!network.recurrent());
  CHECK_EQ(Network::Parse("input uint8 3; graph 2 2 1").dimension(), 2);  // only biases
}

TEST(PoolsHaveNoWeights) {
  CheckConv("input uint8 7 10 3; max_pool 3 2 2 same; bias", 4, 5, 1, 0);
  CheckConv("input uint8 7 10 3; avg_pool 3 2 2 valid; bias", 3, 5, 0, 0);
  CHECK_EQ(Network::Parse("input uint8 7 10 3; max_pool 3 2 2 valid; bias").dimension(), 3);
}

TEST(PaddingIsTensorFlows) {
  CheckConv("input uint8 84 84 4; conv 32 8 8 4 same 1", 21, 21, 2, 2);
  CheckConv("input uint8 21 21 32; conv 64 4 4 2 same 1", 11, 11, 1, 1);
  CheckConv("input uint8 11 11 64; conv 64 3 3 1 same 1", 11, 11, 1, 1);
  CheckConv("input uint8 84 84 4; conv 32 8 8 4 valid 1", 20, 20, 0, 0);
  CheckConv("input uint8 7 10 1; conv 1 3 2 2 same 1", 4, 5, 1, 0);
  CheckConv("input uint8 7 10 1; conv 1 3 2 2 valid 1", 3, 5, 0, 0);
  CheckConv("input uint8 9 9 1; conv 1 2 2 3 same 1", 3, 3, 0, 0);  // the stride skips a part of the input
  CheckConv("input uint8 2 3 1; conv 1 5 7 1 same 1", 2, 3, 2, 3);
}

TEST(OtherShapes) {
  const Network mlp = Network::Parse(" input float32 17 ;dense 5 1;tanh;dense 3 0.5 ; bias; ");
  CHECK_EQ(mlp.dimension(), 17 * 5 + 5 * 3 + 3);
  CHECK_EQ(mlp.output_size(), 3);
  const Network matrix = Network::Parse("input float32 4 6; bias; dense 2 1");
  CHECK_EQ(matrix.dimension(), 6 + 24 * 2);
  const Network image = Network::Parse("input float32 5 4 3; conv 2 2 2 1 valid 1; bias");
  CHECK_EQ(image.output_size(), 4 * 3 * 2);
}

TEST(Errors) {
  const auto parse = [](const char* text) { return Network::Parse(text).dimension(); };
  CHECK_THROWS(parse(""), "network layer 0 '': is empty");
  CHECK_THROWS(parse("dense 3 1"), "network layer 0 'dense 3 1': expected input uint8|float32 DIM...");
  CHECK_THROWS(parse("input uint8"), "has 2 words, expected at least 3");
  CHECK_THROWS(parse("input int64 3; dense 2 1"), "the input's type is 'int64', expected uint8 or float32");
  CHECK_THROWS(parse("input uint8 0; dense 2 1"), "a dimension is '0', expected an integer in [1, 268435456]");
  CHECK_THROWS(parse("input uint8 99999999999; dense 2 1"), "a dimension is '99999999999'");
  CHECK_THROWS(parse("input uint8 100000 100000; dense 2 1"), "is too large");
  CHECK_THROWS(parse("input uint8 3; dnse 2 1"), "network layer 1 'dnse 2 1': 'dnse' is not a layer");
  CHECK_THROWS(parse("input uint8 3; dense 2"), "network layer 1 'dense 2': has 2 words, expected 3: dense UNITS STD");
  CHECK_THROWS(parse("input uint8 3; dense 2.5 1"), "the number of units is '2.5', expected an integer");
  CHECK_THROWS(parse("input uint8 3; dense -2 1"), "the number of units is '-2'");
  CHECK_THROWS(parse("input uint8 3; dense 2 x"), "the initial standard deviation is 'x', expected a number");
  CHECK_THROWS(parse("input uint8 3; dense 2 nan"), "the initial standard deviation is 'nan'");
  CHECK_THROWS(parse("input uint8 3; dense 2 -1"), "the initial standard deviation is '-1'");
  CHECK_THROWS(parse("input uint8 3; dense 2 1;; bias"), "network layer 2 '': is empty");
  CHECK_THROWS(parse("input uint8 3; input uint8 3"), "input may only be the first layer");
  CHECK_THROWS(parse("input uint8 3; relu 3; dense 1 1"), "has 2 words, expected 1: relu");
  CHECK_THROWS(parse("input uint8 3; relu"), "has no weights");
  CHECK_THROWS(parse("input uint8 3; vbn"), "has no weights");
  CHECK_THROWS(parse("input uint8 3; vbn 128; dense 1 1"), "has 2 words, expected 1: vbn");
  CHECK_THROWS(parse("input uint8 3; layer_norm 2; dense 1 1"), "has 2 words, expected 1: layer_norm");
  CHECK_THROWS(parse("input uint8 3; leaky_relu; dense 1 1"), "has 1 words, expected 2: leaky_relu SLOPE");
  CHECK_THROWS(parse("input uint8 3; leaky_relu -1; dense 1 1"), "the slope is '-1', expected a number in [0, 1e6]");
  CHECK_THROWS(parse("input uint8 3; max_pool 2 2 2 same; dense 1 1"), "needs an input of height, width and channels");
  CHECK_THROWS(parse("input uint8 3 3 1; avg_pool 2 4 2 valid; bias"), "kernel of 2x4 does not fit its input of 3x3");
  CHECK_THROWS(parse("input uint8 3 3 1; max_pool 2 2 same; bias"), "expected 5: max_pool|avg_pool KH KW STRIDE same");
  CHECK_THROWS(parse("input uint8 3; lstm 4; dense 1 1"), "has 2 words, expected 3: lstm UNITS STD");
  CHECK_THROWS(parse("input uint8 3; lstm 0 1; dense 1 1"), "the number of units is '0'");
  CHECK_THROWS(parse("input uint8 3; lstm 4 1; vbn; dense 1 1"), "layer 2 'vbn': may not follow lstm");
  CHECK_THROWS(parse("input uint8 3; lstm 268435456 1"), "is too large: an activation may have 268435456 values");
  CHECK_THROWS(parse("input uint8 3; graph 2 1"), "has 3 words, expected at least 4: graph UNITS OUTPUTS STD FROM>TO");
  CHECK_THROWS(parse("input uint8 3; graph 0 1 1"), "the number of units is '0'");
  CHECK_THROWS(parse("input uint8 3; graph 2 3 1"), "the number of outputs is 3, expected at most its 2 units");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 -1"), "the initial standard deviation is '-1'");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 0-3"), "an edge is '0-3', expected FROM>TO");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 0>3x"), "an edge is '0>3x', expected FROM>TO");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 >3"), "an edge is '>3', expected FROM>TO");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 0>99999999999"), "an edge is '0>99999999999', expected FROM>TO");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 -1>3"), "the edge -1>3 starts at node -1, expected one in [0, 4)");
  CHECK_THROWS(parse("input uint8 3; graph 3 2 1 4>5"), "the edge 4>5 starts at node 4, expected one in [0, 4)");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 0>2"), "the edge 0>2 ends at node 2, expected one in [3, 5)");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 0>5"), "the edge 0>5 ends at node 5, expected one in [3, 5)");
  CHECK_THROWS(parse("input uint8 3; graph 3 1 1 4>3"), "the edge 4>3 is not feedforward");
  CHECK_THROWS(parse("input uint8 3; graph 3 1 1 3>3"), "the edge 3>3 is not feedforward");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 0>3 0>3"), "the edge 0>3 follows 0>3, expected each edge once");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 1>3 0>3"), "the edge 0>3 follows 1>3");
  CHECK_THROWS(parse("input uint8 3; graph 2 1 1 0>4 0>3"), "the edge 0>3 follows 0>4");
  CHECK_THROWS(parse("input uint8 3; graph 268435456 1 1"), "is too large: an activation may have 268435456 values");
  CHECK_THROWS(parse("input uint8 9 9; conv 1 2 2 1 same 1"), "needs an input of height, width and channels");
  CHECK_THROWS(parse("input uint8 9 9 1; dense 4 1; conv 1 2 2 1 same 1"), "layer 2 'conv 1 2 2 1 same 1': needs");
  CHECK_THROWS(parse("input uint8 9 9 1; conv 1 2 2 1 sme 1"), "padding is 'sme', expected same or valid");
  CHECK_THROWS(parse("input uint8 9 9 1; conv 1 2 2 0 same 1"), "the stride is '0'");
  CHECK_THROWS(parse("input uint8 9 9 1; conv 1 10 2 1 valid 1"), "kernel of 10x2 does not fit its input of 9x9");
  CHECK_THROWS(parse("input uint8 99 99 99; conv 268435456 99 99 1 same 1"), "is too large");
  CHECK_THROWS(parse("input uint8 3; dense 268435456 1; dense 268435456 1"), "is too large");
}
