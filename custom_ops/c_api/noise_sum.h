/* C interface of the gradient sum of evolution strategies (population/noise_sum.h). Codes and errors: neuroevo.h.
 */
#ifndef NEUROEVO_C_API_NOISE_SUM_H_
#define NEUROEVO_C_API_NOISE_SUM_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* out [count] = the sum of weights [n] * noise of seeds [n] at positions begin ... begin + count - 1, and squares
 * [count] = the sum of square_weights [n] * (noise^2 - 1), on the threads of neuroevo_set_threads; squares and
 * square_weights may both be NULL. A vector may be computed in parts with bit-identical results, so that callers can be
 * interrupted in between. */
int neuroevo_noise_sum(const uint64_t* seeds, const float* weights, int64_t n, int64_t begin, int64_t count, float* out,
                       const float* square_weights, float* squares);

/* The same on the GPU; exported by the GPU backend's library. */
int neuroevo_cuda_noise_sum(const uint64_t* seeds, const float* weights, int64_t n, int64_t begin, int64_t count,
                            float* out, const float* square_weights, float* squares);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_NOISE_SUM_H_ */
