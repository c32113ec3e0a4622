/* Members of low rank (networks/low_rank.h) for callers of any language, as c_api/neuroevo.h: 0 for success, or a code
 * and neuroevo_last_error().
 */
#ifndef NEUROEVO_C_API_LOW_RANK_H_
#define NEUROEVO_C_API_LOW_RANK_H_

#include <stdint.h>

#include "c_api/neuroevo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As neuroevo_population_make with float32, but rows from float_rows on are members of that rank (see
 * population/population.h). */
int neuroevo_population_make_low_rank(const char* backend, const char* const* networks, int64_t n, int64_t rows,
                                      int64_t float_rows, int32_t rank, neuroevo_population** population);

/* sums [dimension] += weights [n] * the noise of members with seeds [n], of a network whose D is `dimension`
 * (population/low_rank_sum.h), on the threads of neuroevo_set_threads. Terms may come in several calls, with the same
 * bits: a caller who wants to be interrupted gives some after the others. */
int neuroevo_low_rank_sum(const char* network, int32_t rank, const uint64_t* seeds, const float* weights, int64_t n,
                          int64_t dimension, double* sums);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_LOW_RANK_H_ */
