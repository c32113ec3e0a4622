/* Virtual batch normalization of a population's networks, for ctypes and for C. Codes and errors: neuroevo.h.
 */
#ifndef NEUROEVO_C_API_VBN_H_
#define NEUROEVO_C_API_VBN_H_

#include <stdint.h>

#include "c_api/neuroevo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* observations: b of the networks' input, once; see population/population.h. */
int neuroevo_population_set_reference(neuroevo_population* population, const void* observations, int64_t b);
/* The statistics of the rows' vbn layers, before the rows are played and after each time that they are filled. */
int neuroevo_population_prepare(neuroevo_population* population, const int64_t* rows, int64_t k);
/* Copies at most n of a prepared row's statistics, in the order of networks/network.h, and tells how many there are.
 */
int neuroevo_population_statistics(neuroevo_population* population, int64_t row, float* statistics, int64_t n,
                                   int64_t* count);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_VBN_H_ */
