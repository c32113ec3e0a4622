#include "c_api/low_rank.h"

#include <memory>
#include <utility>
#include <vector>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "core/error.h"
#include "networks/low_rank.h"
#include "population/low_rank_sum.h"

extern "C" {

int neuroevo_population_make_low_rank(const char* backend, const char* const* networks, int64_t n, int64_t rows,
                                      int64_t float_rows, int32_t rank, neuroevo_population** population) {
  return neuroevo::Guard([&] {
    std::vector<neuroevo::Network> parsed;
    for (const char* network : neuroevo::Vector(networks, n)) parsed.push_back(neuroevo::Network::Parse(network));
    neuroevo::low_rank::CheckRank(rank);
    *population = neuroevo::populations.Add(neuroevo::Population::Make(
        backend, std::move(parsed), rows, neuroevo::ProcessPool(), neuroevo::DType::kFloat32, float_rows, rank));
  });
}

int neuroevo_low_rank_sum(const char* network, int32_t rank, const uint64_t* seeds, const float* weights, int64_t n,
                          int64_t dimension, double* sums) {
  return neuroevo::Guard([&] {
    neuroevo::CheckArray("seeds", seeds, n);
    neuroevo::CheckArray("weights", weights, n);
    neuroevo::CheckArray("sums", sums, dimension);
    const neuroevo::Network parsed = neuroevo::Network::Parse(network);
    if (dimension != parsed.dimension()) {
      neuroevo::ThrowInvalid("dimension is ", dimension, ", expected the network's D = ", parsed.dimension());
    }
    neuroevo::AddLowRankNoise(parsed, rank, neuroevo::NonZeroTerms(seeds, weights, nullptr, n),
                              neuroevo::ProcessPool().get(), sums);
  });
}

}  // extern "C"
