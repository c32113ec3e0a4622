#include "c_api/vbn.h"

#include <algorithm>
#include <vector>

#include "c_api/guard.h"
#include "c_api/handles.h"

extern "C" {

int neuroevo_population_set_reference(neuroevo_population* population, const void* observations, int64_t b) {
  return neuroevo::Guard([&] { neuroevo::Object(population)->SetReference(observations, b); });
}

int neuroevo_population_prepare(neuroevo_population* population, const int64_t* rows, int64_t k) {
  return neuroevo::Guard([&] { neuroevo::Object(population)->Prepare(neuroevo::Vector(rows, k)); });
}

int neuroevo_population_statistics(neuroevo_population* population, int64_t row, float* statistics, int64_t n,
                                   int64_t* count) {
  return neuroevo::Guard([&] {
    neuroevo::CheckArray("statistics", statistics, n);
    const std::vector<float> all = neuroevo::Object(population)->Statistics(row);
    *count = static_cast<int64_t>(all.size());
    std::copy_n(all.begin(), std::min(n, *count), statistics);
  });
}

}  // extern "C"
