// Networks that can be evaluated in integers, and the memory layout of their rows.
#ifndef NEUROEVO_NETWORKS_INT8_NETWORK_H_
#define NEUROEVO_NETWORKS_INT8_NETWORK_H_

#include <cstdint>
#include <vector>

#include "networks/network.h"

namespace neuroevo {

// Convolution or dense layer with its bias and ReLU, and the byte offsets of its parts in a packed row.
struct Int8Step {
  Layer layer;
  bool has_bias = false;
  Layer bias;
  int64_t inputs = 0;   // per unit or filter
  int64_t outputs = 0;  // number of units or filters
  int64_t weights_place = 0;
  int64_t bias_place = 0;  // float32 [outputs]
  bool dense() const { return layer.kind == Layer::Kind::kDense; }
};

struct Int8Network {
  std::vector<Int8Step> steps;  // all but the last end with a ReLU
  bool relu_at_the_end = false;
  int64_t row_bytes = 0;  // a row starts with k of every step, int32

  // index: index of the network, for messages. Throws an Error with layer and reason if integers are not supported.
  Int8Network(const Network& network, int64_t index);

  // Set the offsets of all steps, which have weights [step] bytes of weights each.
  void Place(const std::vector<int64_t>& weights);
};

}  // namespace neuroevo

#endif  // NEUROEVO_NETWORKS_INT8_NETWORK_H_
