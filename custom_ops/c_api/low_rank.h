/* C interface of low-rank members (networks/low_rank.h). Codes and errors: neuroevo.h.
 */
#ifndef NEUROEVO_C_API_LOW_RANK_H_
#define NEUROEVO_C_API_LOW_RANK_H_

#include <stdint.h>

#include "c_api/neuroevo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Like neuroevo_population_make with float32, but rows from float_rows on are members of this rank (see
 * population/population.h). */
int neuroevo_population_make_low_rank(const char* backend, const char* const* networks, int64_t n, int64_t rows,
                                      int64_t float_rows, int32_t rank, neuroevo_population** population);

/* sums [dimension] += weights [n] * the noise of members with seeds [n], of a network whose D is `dimension`
 * (population/low_rank_sum.h), on the threads of neuroevo_set_threads. The terms may be split over several calls with a
 * bit-identical result, so that callers can be interrupted in between. */
int neuroevo_low_rank_sum(const char* network, int32_t rank, const uint64_t* seeds, const float* weights, int64_t n,
                          int64_t dimension, double* sums);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_LOW_RANK_H_ */
