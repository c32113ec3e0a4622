// Which entries of a Perturb call must follow each other.
#ifndef NEUROEVO_POPULATION_PERTURB_CHAINS_H_
#define NEUROEVO_POPULATION_PERTURB_CHAINS_H_

#include <cstdint>
#include <vector>

namespace neuroevo {

// Gives each entry of a Perturb call its chain: entries of different chains share no row that any of them writes, so
// chains may run in any order. Returns the entries of each chain in list order.
std::vector<std::vector<int32_t>> PerturbChains(const std::vector<int64_t>& dst, const std::vector<int64_t>& src);

}  // namespace neuroevo

#endif  // NEUROEVO_POPULATION_PERTURB_CHAINS_H_
