/* C interface of a population's virtual batch normalization. Codes and errors: neuroevo.h.
 */
#ifndef NEUROEVO_C_API_VBN_H_
#define NEUROEVO_C_API_VBN_H_

#include <stdint.h>

#include "c_api/neuroevo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Set the reference batch, once: b observations of the networks' input dtype and shape; see population/population.h. */
int neuroevo_population_set_reference(neuroevo_population* population, const void* observations, int64_t b);
/* Compute the statistics of the rows' vbn layers: after each fill of a row and before it is played. */
int neuroevo_population_prepare(neuroevo_population* population, const int64_t* rows, int64_t k);
/* Copy at most n of a prepared row's statistics, in the order of networks/network.h; count: their total number. */
int neuroevo_population_statistics(neuroevo_population* population, int64_t row, float* statistics, int64_t n,
                                   int64_t* count);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_VBN_H_ */
