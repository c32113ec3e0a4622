// A graph layer, vectorized over slots, since an edge of a sparse graph is one product per slot.
#include <algorithm>

#include "core/simd.h"
#include "population/cpu/float32/kernels.h"

namespace neuroevo {

int64_t GraphMemorySize(const Layer& layer) { return (ValuesOf(layer.in) + layer.units) * kLanes; }

void CpuGraph(const Layer& layer, const float* weights, int slots, const float* in, int64_t in_stride, float* out,
              int64_t out_stride, float* memory) {
  const int64_t inputs = ValuesOf(layer.in), hidden = layer.units - layer.out[2];
  const Edge* const end = layer.edges.data() + layer.edges.size();
  const float* const biases = weights + layer.edges.size();
  for (int first = 0; first < slots; first += kLanes) {
    const int lanes = std::min(kLanes, slots - first);
    for (int64_t i = 0; i < inputs; ++i) {
      float* value = memory + i * kLanes;
      for (int s = 0; s < lanes; ++s) value[s] = in[(first + s) * in_stride + i];
    }
    const Edge* edge = layer.edges.data();
    const float* weight = weights;
    for (int64_t unit = 0; unit < layer.units; ++unit) {
      Floats sum(biases[unit]);
      for (; edge != end && edge->to == inputs + unit; ++edge, ++weight) {
        sum = Fma(Floats(*weight), Floats::Load(memory + int64_t{edge->from} * kLanes), sum);
      }
      float* value = memory + (inputs + unit) * kLanes;
      if (unit < hidden) {
        Tanh(sum).Store(value);
        continue;
      }
      sum.Store(value);
      for (int s = 0; s < lanes; ++s) out[(first + s) * out_stride + unit - hidden] = value[s];
    }
  }
}

}  // namespace neuroevo
