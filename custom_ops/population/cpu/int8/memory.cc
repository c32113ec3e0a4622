#include "population/cpu/int8/memory.h"

#include "population/row_memory.h"

namespace neuroevo {

Frame FrameOf(const Int8Network& network, size_t i) {
  const std::vector<Int8Step>& steps = network.steps;
  return {i == 0 ? steps[0].layer.in : steps[i - 1].layer.out, i < steps.size() ? &steps[i].layer : nullptr};
}

void Int8Memory::Begin(const Int8Network& network) {
  const std::vector<Int8Step>& steps = network.steps;
  size_t first_dense = 0;
  while (first_dense < steps.size() && !steps[first_dense].dense()) ++first_dense;
  images.resize(first_dense + 1);
  convs.resize(first_dense);
  dense.resize(steps.size() - first_dense);
  for (size_t i = 0; i <= first_dense; ++i) {
    images[i].bytes.resize(FrameOf(network, i).size + RowMemory::kSlack);
    images[i].exponent = 0;
  }
  for (size_t i = 0; i < first_dense; ++i) {
    const Layer& layer = steps[i].layer;
    convs[i].sums.resize(ValuesOf(layer.out) + RowMemory::kSlack / sizeof(int32_t));
    convs[i].bias.values.resize(layer.out[2] + RowMemory::kSlack / sizeof(int32_t));
    convs[i].largest.resize(int64_t{layer.out[0]} * layer.out[1]);
  }
  for (size_t i = first_dense; i < steps.size(); ++i) {
    Dense& layer = dense[i - first_dense];
    layer.bias.values.resize(steps[i].outputs + RowMemory::kSlack / sizeof(int32_t));
    layer.in.resize(steps[i].inputs);
    layer.sums.resize(steps[i].outputs + RowMemory::kSlack / sizeof(int32_t));
    layer.out.resize(steps[i].outputs);
  }
}

}  // namespace neuroevo
