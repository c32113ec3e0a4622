// Where the weights of a slot's row are.
#ifndef NEUROEVO_POPULATION_ROW_WEIGHTS_H_
#define NEUROEVO_POPULATION_ROW_WEIGHTS_H_

namespace neuroevo {

// Of a row that holds weights, all in one place. Of a member (networks/low_rank.h), the matrices of conv and dense
// layers in its center's row, and its factors and everything else in its own.
struct RowWeights {
  const float* matrices;
  const float* own;
  float factor = 0;  // c of low_rank.h; 0: it has no factors
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_ROW_WEIGHTS_H_
