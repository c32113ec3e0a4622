// A network as a list of layers, parsed from one line of text, with the place of every layer's weights in theta.
//
//   input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias
//
// Layers:  input (uint8|float32) DIM...        uint8 inputs are multiplied by 1/255
//          conv FILTERS KH KW STRIDE (same|valid) STD    NHWC input, weights [KH, KW, C, FILTERS], TensorFlow's padding
//          dense UNITS STD                     flattens its input, weights [IN, UNITS]
//          bias                                one weight per channel (last dimension), initially 0
//          relu, tanh, silu, gelu, leaky_relu SLOPE    gelu in its form with tanh (activations.h)
//          max_pool KH KW STRIDE (same|valid)  likewise avg_pool, whose mean is of the positions inside the image
//          layer_norm                          over the channels (last dimension) of each position, with no weights
//          vbn                                 virtual batch normalization (Salimans et al. 2016), with no weights
//          lstm UNITS STD                      a recurrent cell (Hochreiter and Schmidhuber 1997, with a forget gate)
//          graph UNITS OUTPUTS STD FROM>TO...  flattens its input; units that are connected edge by edge
// theta is the concatenation of the layers' weights in list order, each row-major: float32, length D.
//
// vbn turns the values x of channel c (last dimension) into (x - mean_c) / sqrt(variance_c + 1e-3), with mean and
// variance of the channel's values at all positions of B reference observations, as this very network makes them: those
// of a second vbn are of what the first has normalized. What it does to the bit is in vbn.h. A row holds its statistics
// behind its theta: of each vbn, in list order, the means of all channels, then the factors 1 / sqrt(variance + 1e-3).
//
// lstm flattens its input x and has a state, of units each: its last output h and its cell c, both zero when an episode
// begins. It is parsed into three layers: recall, which makes [x, h]; dense with weights [IN + UNITS, 4 * UNITS] and a
// bias, of the gates i, f, g and o in this order; and cell: c' = sigmoid(f) c + sigmoid(i) tanh(g) and the output
// h' = sigmoid(o) tanh(c'). No vbn may follow it, as the reference batch has no order. A state of the network holds, of
// each lstm in list order, h, then c.
//
// graph has nodes: n inputs, with the numbers 0 to n - 1, and UNITS units, the last OUTPUTS of which are the outputs.
// An edge goes from an input or a unit that is not an output to a unit of a higher number. Edges are listed in
// ascending order of (TO, FROM), each once. The sum of a unit starts at its bias and adds weight * value(FROM) by one
// fused multiply-add for each of its edges, in list order; zeros are not left out. The value of a unit is the tanh of
// its sum, that of an output the sum itself: saturated outputs would be equal where the greatest one is an action, and
// a tanh layer can follow where an action is a vector. Weights: one per edge, then one bias per unit, all with an
// initial standard deviation of STD, whatever the number of a unit's edges is. To low_rank.h they are like biases.
#ifndef NEUROEVO_NETWORKS_NETWORK_H_
#define NEUROEVO_NETWORKS_NETWORK_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace neuroevo {

// Of a tensor of that height, width and channels.
inline int64_t ValuesOf(const std::array<int, 3>& shape) { return int64_t{1} * shape[0] * shape[1] * shape[2]; }

// An edge of a graph layer, between two of its nodes.
struct Edge {
  int from, to;
};

struct Layer {
  enum class Kind {
    kConv,
    kDense,
    kBias,
    kRelu,
    kTanh,
    kVbn,
    kLeakyRelu,
    kSilu,
    kGelu,
    kMaxPool,
    kAvgPool,
    kLayerNorm,
    kRecall,
    kCell,
    kGraph
  };
  Kind kind = {};
  std::array<int, 3> in;                       // height, width, channels; a flat tensor of n values is {1, 1, n}
  std::array<int, 3> out;                      // likewise
  int kernel_h = 0, kernel_w = 0, stride = 0;  // conv and pools
  int pad_top = 0, pad_left = 0;               // likewise: positions outside the image before its first row and column
  float slope = 0;                             // leaky_relu: of negative values
  float init_scale = 0;                        // conv, dense: std / sqrt(fan_in); graph: std; bias: 0
  int64_t offset = 0;                          // of the layer's weights in theta
  int64_t weights = 0;                         // how many
  int64_t statistics = 0;                      // vbn: where its means, then its factors are in a row
  int64_t state = 0;                           // recall, cell: where h, then c of the cell are in a state
  int rank = 0;                                // of a member's conv or dense layer (low_rank.h); 0: it is a matrix
  int64_t factors = 0;                         // with a rank: where A, then B are in the member
  int units = 0;                               // graph: outputs included
  std::vector<Edge> edges;                     // graph

  // conv, dense: the products of a sum; the weights are a matrix [inputs, out[2]].
  int64_t inputs() const { return weights / out[2]; }
  bool matrix() const { return kind == Kind::kConv || kind == Kind::kDense; }
  bool pool() const { return kind == Kind::kMaxPool || kind == Kind::kAvgPool; }
};

// As in the text; "lstm" for the layers that one is parsed into.
const char* NameOf(Layer::Kind kind);

class Network {
 public:
  // Throws Error naming the layer and what was expected.
  static Network Parse(const std::string& text);

  const std::string& text() const { return text_; }
  DType input_dtype() const { return input_dtype_; }
  const std::vector<int>& input_shape() const { return input_shape_; }
  int64_t input_size() const { return input_size_; }  // values per observation
  int output_size() const { return output_size_; }    // values per output, A
  int64_t dimension() const { return dimension_; }    // D
  int64_t row_size() const { return row_size_; }      // floats of a row: D and the statistics of vbn
  bool has_vbn() const { return row_size_ > dimension_; }
  int64_t state_size() const { return state_size_; }  // floats of a state
  bool recurrent() const { return state_size_ > 0; }
  const std::vector<Layer>& layers() const { return layers_; }

  // Of members of a rank in [1, low_rank::kMaxRank]; see low_rank.h.
  int64_t factors(int rank) const;                   // noise values of a member, F
  std::vector<Layer> member_layers(int rank) const;  // the layers with their places in a member
  int64_t member_size(int rank) const {              // floats of a member: F and the statistics of vbn
    return factors(rank) + row_size_ - dimension_;
  }

 private:
  std::string text_;
  DType input_dtype_ = DType::kFloat32;
  std::vector<int> input_shape_;
  int64_t input_size_ = 0;
  int output_size_ = 0;
  int64_t dimension_ = 0;
  int64_t row_size_ = 0;
  int64_t state_size_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_NETWORKS_NETWORK_H_
