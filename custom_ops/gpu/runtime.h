// What kernels are written with, for .cu files alone: the CUDA runtime, and names for what it has only in assembly.
// Without nvcc the same names come from gpu/emulated, and the kernels run on the CPU.
#ifndef NEUROEVO_GPU_RUNTIME_H_
#define NEUROEVO_GPU_RUNTIME_H_

#ifdef __CUDACC__
#include "gpu/nvcc/runtime.h"
#else
#include "gpu/emulated/runtime.h"
#endif

#endif  // NEUROEVO_GPU_RUNTIME_H_
