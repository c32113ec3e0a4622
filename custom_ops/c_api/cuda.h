/* Queries of the GPU backend's library before its use, for ctypes. None of these functions fails.
 *
 * Returned strings are valid until the thread's next call of these functions.
 */
#ifndef NEUROEVO_C_API_CUDA_H_
#define NEUROEVO_C_API_CUDA_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reason why no GPU is usable; null if one is usable. */
const char* neuroevo_cuda_why_not(void);
/* Versions of CUDA: "built with 13.0, the driver supports 12.4", or "built with 13.0, no driver". */
const char* neuroevo_cuda_versions(void);
/* "NVIDIA H200, compute capability 9.0"; empty if no GPU is usable. */
const char* neuroevo_cuda_name(void);
/* Size of the GPU's memory in bytes; 0 if no GPU is usable. */
int64_t neuroevo_cuda_free_bytes(void);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_CUDA_H_ */
