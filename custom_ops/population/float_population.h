// A population whose rows are float32 weights.
#ifndef NEUROEVO_POPULATION_FLOAT_POPULATION_H_
#define NEUROEVO_POPULATION_FLOAT_POPULATION_H_

#include <cstdint>

#include "population/population.h"

namespace neuroevo {

class FloatPopulation : public Population {
 public:
  // Returns a pointer to a row's theta, in host or device memory depending on the backend.
  virtual const float* Theta(int64_t row) const = 0;

 protected:
  using Population::Population;
};

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_FLOAT_POPULATION_H_
