// The cell of an lstm, vectorized over units.
#include <algorithm>

#include "core/simd.h"
#include "networks/activations.h"
#include "population/cpu/float32/kernels.h"

namespace neuroevo {

void CpuCell(int units, const float* gates, float* state, float* out) {
  float *h = state, *c = state + units;
  for (int u = 0; u < units; u += kLanes) {
    const int lanes = std::min(kLanes, units - u);
    const auto gate = [&](int number) { return Floats::Load(gates + int64_t{number} * units + u); };
    Floats cell = Floats::Load(c + u), output;
    activations::Cell(gate(0), gate(1), gate(2), gate(3), &cell, &output);
    cell.StorePartial(c + u, lanes);
    output.StorePartial(h + u, lanes);
    output.StorePartial(out + u, lanes);
  }
}

}  // namespace neuroevo
