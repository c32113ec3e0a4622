// The dependencies between the entries of a Perturb call.
#ifndef NEUROEVO_POPULATION_PERTURB_CHAINS_H_
#define NEUROEVO_POPULATION_PERTURB_CHAINS_H_

#include <cstdint>
#include <vector>

namespace neuroevo {

// Partitions the entries of a Perturb call into chains. Entries of different chains share no row that either of them
// writes, so chains may run in any order. Returns the entries of each chain in list order.
std::vector<std::vector<int32_t>> PerturbChains(const std::vector<int64_t>& dst, const std::vector<int64_t>& src);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_PERTURB_CHAINS_H_
