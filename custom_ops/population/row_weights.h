// Pointers to the weights of a slot's row.
#ifndef NEUROEVO_POPULATION_ROW_WEIGHTS_H_
#define NEUROEVO_POPULATION_ROW_WEIGHTS_H_

namespace neuroevo {

// For a row that holds weights, matrices == own. For a member (networks/low_rank.h), the matrices of conv and dense
// layers are in its center's row, and its factors and all other values in its own row.
struct RowWeights {
  const float* matrices;
  const float* own;
  float factor = 0;  // c of low_rank.h; 0: the row has no factors
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_ROW_WEIGHTS_H_
