#include "networks/low_rank.h"

#include <algorithm>

#include "core/error.h"

namespace neuroevo {

std::vector<Layer> Network::member_layers(int rank) const {
  low_rank::CheckRank(rank);
  std::vector<Layer> layers = layers_;
  int64_t next = 0;
  for (Layer& layer : layers) {
    if (layer.matrix()) {
      layer.rank = rank;
      layer.factors = next;
      next += rank * (layer.inputs() + layer.out[2]);
    } else {
      layer.offset = next;
      next += layer.weights;
    }
  }
  for (Layer& layer : layers) layer.statistics += next - dimension_;
  return layers;
}

int64_t Network::factors(int rank) const {
  low_rank::CheckRank(rank);
  int64_t count = 0;
  for (const Layer& layer : layers_) {
    count += layer.matrix() ? rank * (layer.inputs() + layer.out[2]) : layer.weights;
  }
  return count;
}

namespace low_rank {

void CheckRank(int64_t rank) {
  if (rank < 1 || rank > kMaxRank) ThrowInvalid("rank is ", rank, ", expected 1 to ", kMaxRank);
}

void Materialize(const Network& network, const std::vector<Layer>& member_layers, const float* center,
                 const float* member, float scale, float* theta) {
  for (size_t l = 0; l < member_layers.size(); ++l) {
    const Layer& layer = member_layers[l];
    const int64_t offset = network.layers()[l].offset;
    if (!layer.matrix()) {
      std::copy_n(member + layer.offset, layer.weights, theta + offset);
      continue;
    }
    const int64_t m = layer.inputs(), n = layer.out[2];
    const float *a = member + layer.factors, *b = a + layer.rank * m, c = Factor(scale, layer.rank);
    std::copy_n(center + offset, layer.weights, theta + offset);
    for (int q = 0; q < layer.rank && scale != 0; ++q) {
      for (int64_t i = 0; i < m; ++i) {
        const float left = Mul(c, a[q * m + i]);
        float* row = theta + offset + i * n;
        for (int64_t j = 0; j < n; ++j) row[j] = Fma(left, b[q * n + j], row[j]);
      }
    }
  }
}

}  // namespace low_rank
}  // namespace neuroevo
