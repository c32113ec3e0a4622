// A network as a list of layers, parsed from one line of text, with the offset of every layer's weights in theta.
//
//   input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias
//
// Layers:  input (uint8|float32) DIM...        uint8 inputs are multiplied by 1/255
//          conv FILTERS KH KW STRIDE (same|valid) STD    NHWC input, weights [KH, KW, C, FILTERS], TensorFlow's padding
//          dense UNITS STD                     flattens its input, weights [IN, UNITS]
//          bias                                one weight per channel (last dimension), initially 0
//          relu, tanh, silu, gelu, leaky_relu SLOPE    gelu in its tanh approximation (activations.h)
//          max_pool KH KW STRIDE (same|valid)  or avg_pool, which averages the positions inside the image only
//          layer_norm                          over the channels (last dimension) of each position, with no weights
//          vbn                                 virtual batch normalization (Salimans et al. 2016), with no weights
//          lstm UNITS STD                      a recurrent cell (Hochreiter and Schmidhuber 1997, with a forget gate)
//          graph UNITS OUTPUTS STD FROM>TO...  flattens its input; units connected by an explicit edge list
// theta is the concatenation of the layers' weights in list order, each row-major: float32, length D.
//
// vbn maps the values x of channel c (last dimension) to (x - mean_c) / sqrt(variance_c + 1e-3), with the mean and
// variance of the channel's values at all positions of B reference observations evaluated by this network: the
// statistics of a second vbn are of values that the first has normalized. vbn.h defines the exact arithmetic. A row
// holds the statistics after its theta: for each vbn, in list order, the means of all channels, then the factors
// 1 / sqrt(variance + 1e-3).
//
// lstm flattens its input x and has a state: its last output h and its cell c, UNITS values each, both zero at the
// start of an episode. It is parsed into three layers: recall, which outputs [x, h]; dense with a bias and weights
// [IN + UNITS, 4 * UNITS], for the gates i, f, g and o in this order; and cell: c' = sigmoid(f) c + sigmoid(i) tanh(g)
// and the output h' = sigmoid(o) tanh(c'). No vbn may follow lstm, as the reference batch has no order. A state of the
// network holds h, then c of each lstm in list order.
//
// graph has nodes: n inputs, numbered 0 to n - 1, then UNITS units, the last OUTPUTS of which are the outputs. An edge
// connects an input or a non-output unit to a unit with a higher number. Edges are listed in ascending order of (TO,
// FROM), each once. The sum of a unit starts at its bias and adds weight * value(FROM) by one fused multiply-add for
// each of its edges, in list order; zeros are not skipped. The value of a unit is the tanh of its sum, but an output's
// value is the sum itself: saturated outputs would tie in an argmax over actions, and a tanh layer can be appended for
// action vectors. Weights: one per edge, then one bias per unit, all with an initial standard deviation of STD,
// independent of the number of edges of a unit. low_rank.h treats them like biases.
#ifndef NEUROEVO_NETWORKS_NETWORK_H_
#define NEUROEVO_NETWORKS_NETWORK_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace neuroevo {

// Number of values of a tensor with this height, width and channels.
inline int64_t ValuesOf(const std::array<int, 3>& shape) { return int64_t{1} * shape[0] * shape[1] * shape[2]; }

// Edge of a graph layer, between two of its nodes.
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
  std::array<int, 3> out;                      // the same of the output
  int kernel_h = 0, kernel_w = 0, stride = 0;  // conv and pools
  int pad_top = 0, pad_left = 0;               // conv and pools: padding before the first row and column
  float slope = 0;                             // leaky_relu: slope for negative values
  float init_scale = 0;                        // conv, dense: std / sqrt(fan_in); graph: std; bias: 0
  int64_t offset = 0;                          // offset of the layer's weights in theta
  int64_t weights = 0;                         // number of weights
  int64_t statistics = 0;                      // vbn: offset of its means, then its factors in a row
  int64_t state = 0;                           // recall, cell: offset of h, then c of the cell in a state
  int rank = 0;                                // rank of a member's conv or dense layer (low_rank.h); 0: full matrix
  int64_t factors = 0;                         // if rank > 0: offset of A, then B in the member
  int units = 0;                               // graph: number of units, outputs included
  std::vector<Edge> edges;                     // graph

  // conv, dense: number of products per sum; the weights are a matrix [inputs, out[2]].
  int64_t inputs() const { return weights / out[2]; }
  bool matrix() const { return kind == Kind::kConv || kind == Kind::kDense; }
  bool pool() const { return kind == Kind::kMaxPool || kind == Kind::kAvgPool; }
};

// Return the name used in the text; "lstm" for each of the layers into which an lstm is parsed.
const char* NameOf(Layer::Kind kind);

class Network {
 public:
  // Parse a network's text. Throws an Error that names the layer and what was expected.
  static Network Parse(const std::string& text);

  const std::string& text() const { return text_; }
  DType input_dtype() const { return input_dtype_; }
  const std::vector<int>& input_shape() const { return input_shape_; }
  int64_t input_size() const { return input_size_; }  // values per observation
  int output_size() const { return output_size_; }    // values per output, A
  int64_t dimension() const { return dimension_; }    // D
  int64_t row_size() const { return row_size_; }      // floats per row: D and the statistics of vbn
  bool has_vbn() const { return row_size_ > dimension_; }
  int64_t state_size() const { return state_size_; }  // floats per state
  bool recurrent() const { return state_size_ > 0; }
  const std::vector<Layer>& layers() const { return layers_; }

  // Layout of members of a rank in [1, low_rank::kMaxRank]; see low_rank.h.
  int64_t factors(int rank) const;                   // noise values per member, F
  std::vector<Layer> member_layers(int rank) const;  // the layers with their offsets in a member
  int64_t member_size(int rank) const {              // floats per member: F and the statistics of vbn
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
