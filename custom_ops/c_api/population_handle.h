// What stands behind a neuroevo_population of the C interfaces.
#ifndef NEUROEVO_C_API_POPULATION_HANDLE_H_
#define NEUROEVO_C_API_POPULATION_HANDLE_H_

#include <memory>

#include "population/population.h"

struct neuroevo_population {
  std::unique_ptr<neuroevo::Population> object;
};

#endif  // NEUROEVO_C_API_POPULATION_HANDLE_H_
