/* What the host asks the library of the GPU backend before it uses it, for ctypes. Nothing here fails.
 *
 * Strings are valid until the thread's next call of these functions.
 */
#ifndef NEUROEVO_C_API_CUDA_H_
#define NEUROEVO_C_API_CUDA_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why no GPU can be used; null where one can. */
const char* neuroevo_cuda_why_not(void);
/* Versions of CUDA: "built with 13.0, the driver supports 12.4", or "built with 13.0, no driver". */
const char* neuroevo_cuda_versions(void);
/* "NVIDIA H200, compute capability 9.0"; empty where no GPU can be used. */
const char* neuroevo_cuda_name(void);
/* Of the GPU's memory; 0 where no GPU can be used. */
int64_t neuroevo_cuda_free_bytes(void);

#ifdef __cplusplus
}
#endif

#endif /* NEUROEVO_C_API_CUDA_H_ */
