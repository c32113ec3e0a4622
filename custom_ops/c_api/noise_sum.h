/* The gradient sum of evolution strategies for callers of any language, as c_api/neuroevo.h: 0 for success, or a code
 * and neuroevo_last_error(). population/noise_sum.h describes what it computes.
 */
#ifndef NEUROEVO_C_API_NOISE_SUM_H_
#define NEUROEVO_C_API_NOISE_SUM_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* out [count] = the sum of weights [n] * noise of seeds [n] at positions begin ... begin + count - 1, and squares
 * [count] = the sum of square_weights [n] * (noise^2 - 1), on the threads of neuroevo_set_threads; the last two may
 * both be NULL. Parts of a vector have the bits of the whole: a caller who wants to be interrupted asks for one part
 * after the other. */
int neuroevo_noise_sum(const uint64_t* seeds, const float* weights, int64_t n, int64_t begin, int64_t count, float* out,
                       const float* square_weights, float* squares);

/* The same on the GPU; in the library of the GPU backend. */
int neuroevo_cuda_noise_sum(const uint64_t* seeds, const float* weights, int64_t n, int64_t begin, int64_t count,
                            float* out, const float* square_weights, float* squares);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_NOISE_SUM_H_ */
