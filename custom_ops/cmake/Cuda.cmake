# cuda: the GPU backend, built if nvcc is available. Its kernels need no CUDA library but the runtime, which is linked
# statically, so the library can be loaded on machines without a GPU and then reports that no GPU is available.
option(NEUROEVO_CUDA "Build the GPU backend if nvcc is available" ON)
set(NEUROEVO_CUDA_ARCHS all CACHE STRING
    "Compute capabilities, see CMAKE_CUDA_ARCHITECTURES; native: only this machine's GPU; all: 7.5 to 9.0")
if(NEUROEVO_CUDA_ARCHS STREQUAL all)
  set(NEUROEVO_CUDA_ARCHS "75-real;80-real;86-real;89-real;90") # the last one also as PTX, for newer GPUs
endif()
set(NEUROEVO_CUDA_FOUND OFF)
set(NEUROEVO_CUDA_BUILT "") # for build_info.json; empty if the GPU backend is not built
if(NOT NEUROEVO_CUDA OR NOT NEUROEVO_SANITIZE STREQUAL "")
  return()
endif()
if(NOT NEUROEVO_NVCC AND NOT "$ENV{CUDACXX}" STREQUAL "")
  set(NEUROEVO_NVCC "$ENV{CUDACXX}" CACHE FILEPATH "Path of nvcc" FORCE)
endif()
find_program(NEUROEVO_NVCC nvcc PATHS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT NEUROEVO_NVCC)
  message(NOTICE "No GPU backend: nvcc was not found on the PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin")
  return()
endif()
set(CMAKE_CUDA_COMPILER ${NEUROEVO_NVCC})
if("$ENV{CUDAHOSTCXX}" STREQUAL "") # selects another host compiler if nvcc is too old for the default one
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
set(CMAKE_CUDA_ARCHITECTURES ${NEUROEVO_CUDA_ARCHS})
set(CMAKE_CUDA_STANDARD 17)
enable_language(CUDA)

# A driver runs code built with CUDA of its major version or an earlier one.
find_program(NEUROEVO_NVIDIA_SMI nvidia-smi)
if(NEUROEVO_NVIDIA_SMI)
  execute_process(COMMAND ${NEUROEVO_NVIDIA_SMI} OUTPUT_VARIABLE driver ERROR_QUIET TIMEOUT 60)
  string(REGEX REPLACE "[.].*" "" major ${CMAKE_CUDA_COMPILER_VERSION})
  if(driver MATCHES "CUDA[A-Za-z ]* Version: *([0-9]+)([.][0-9]+)" AND CMAKE_MATCH_1 LESS major)
    message(NOTICE "The GPU backend will not run here: the NVIDIA driver supports CUDA ${CMAKE_MATCH_1}${CMAKE_MATCH_2}"
                   ", but ${NEUROEVO_NVCC} belongs to CUDA ${major}. Update the driver, or run `make clean` and set the "
                   "environment variable CUDACXX to the nvcc of CUDA ${CMAKE_MATCH_1}")
  endif()
endif()

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS gpu/nvcc/*.cu population/cuda/*.cu population/cuda/*.cc)
add_library(neuroevo_cuda SHARED ${cuda_sources} c_api/cuda.cc)
target_include_directories(neuroevo_cuda PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(neuroevo_cuda PUBLIC neuroevo_core)
target_compile_definitions(neuroevo_cuda PUBLIC NEUROEVO_CUDA_BACKEND="cuda")
# --fmad=false corresponds to -ffp-contract=off for the host; fused multiply-adds are written explicitly.
target_compile_options(
  neuroevo_cuda
  PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra $<$<BOOL:${NEUROEVO_WERROR}>:-Werror>>
          $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false -Xcompiler=-Wall -Xptxas=-warn-spills
          $<$<BOOL:${NEUROEVO_WERROR}>:-Werror=all-warnings -Xptxas=-Werror>>)
target_link_options(neuroevo_cuda PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
set_target_properties(neuroevo_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static CUDA_STANDARD_REQUIRED ON
                      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
set(NEUROEVO_CUDA_FOUND ON)
list(JOIN NEUROEVO_CUDA_ARCHS " " NEUROEVO_CUDA_BUILT)
set(NEUROEVO_CUDA_BUILT "nvcc ${CMAKE_CUDA_COMPILER_VERSION} for ${NEUROEVO_CUDA_BUILT}")
