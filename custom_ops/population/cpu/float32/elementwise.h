// In-place layers without sums of products that are not fused into a step of a plan.
#ifndef NEUROEVO_POPULATION_CPU_FLOAT32_ELEMENTWISE_H_
#define NEUROEVO_POPULATION_CPU_FLOAT32_ELEMENTWISE_H_

#include <cstdint>
#include <vector>

#include "networks/network.h"

namespace neuroevo {

// Applies layers (vbn, bias, layer_norm or an activation) in order to n adjacent values of whole positions.
void Elementwise(const std::vector<const Layer*>& layers, const float* row, int64_t n, float* values);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_CPU_FLOAT32_ELEMENTWISE_H_
