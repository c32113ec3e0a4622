// API for kernels, for .cu files only: the CUDA runtime, and functions for instructions that it offers only in
// assembly. Without nvcc, gpu/emulated provides the same functions, and the kernels run on the CPU.
#ifndef NEUROEVO_GPU_RUNTIME_H_
#define NEUROEVO_GPU_RUNTIME_H_

#ifdef __CUDACC__
#include "gpu/nvcc/runtime.h"
#else
#include "gpu/emulated/runtime.h"
#endif

#endif  // NEUROEVO_GPU_RUNTIME_H_
