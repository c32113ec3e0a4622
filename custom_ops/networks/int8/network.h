// Which networks can be evaluated in integers, and how a row of one lies in memory.
#ifndef NEUROEVO_NETWORKS_INT8_NETWORK_H_
#define NEUROEVO_NETWORKS_INT8_NETWORK_H_

#include <cstdint>
#include <vector>

#include "networks/network.h"

namespace neuroevo {

// A convolution or dense layer with its bias and ReLU, and the places of its parts in a packed row, in bytes.
struct Int8Step {
  Layer layer;
  bool has_bias = false;
  Layer bias;
  int64_t inputs = 0;   // of a unit or filter
  int64_t outputs = 0;  // units or filters
  int64_t weights_place = 0;
  int64_t bias_place = 0;  // float32 [outputs]
  bool dense() const { return layer.kind == Layer::Kind::kDense; }
};

struct Int8Network {
  std::vector<Int8Step> steps;  // all but the last end with a ReLU
  bool relu_at_the_end = false;
  int64_t row_bytes = 0;  // k of every step, int32, comes first

  // index: the network's, for messages. Throws Error with layer and reason if it cannot be evaluated in integers.
  Int8Network(const Network& network, int64_t index);

  // Gives every step its places, weights [step] bytes each.
  void Place(const std::vector<int64_t>& weights);
};

}  // namespace neuroevo

#endif  // NEUROEVO_NETWORKS_INT8_NETWORK_H_
