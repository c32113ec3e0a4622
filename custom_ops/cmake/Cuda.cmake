# cuda: the GPU backend, where there is an nvcc. Its kernels need no CUDA library but the runtime, which is linked in; a
# machine without a GPU loads the library and is told that there is none.
option(NEUROEVO_CUDA "Build the GPU backend where there is an nvcc" ON)
set(NEUROEVO_CUDA_ARCHS all CACHE STRING
    "Compute capabilities as of CMAKE_CUDA_ARCHITECTURES; native: that of this machine's card alone; all: 7.5 to 9.0")
if(NEUROEVO_CUDA_ARCHS STREQUAL all)
  set(NEUROEVO_CUDA_ARCHS "75-real;80-real;86-real;89-real;90") # the last one also as PTX, for newer cards
endif()
set(NEUROEVO_CUDA_FOUND OFF)
set(NEUROEVO_CUDA_BUILT "") # what build_info.json says: empty where there is no GPU backend
if(NOT NEUROEVO_CUDA OR NOT NEUROEVO_SANITIZE STREQUAL "")
  return()
endif()
if(NOT NEUROEVO_NVCC AND NOT "$ENV{CUDACXX}" STREQUAL "")
  set(NEUROEVO_NVCC "$ENV{CUDACXX}" CACHE FILEPATH "The nvcc" FORCE)
endif()
find_program(NEUROEVO_NVCC nvcc PATHS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT NEUROEVO_NVCC)
  message(NOTICE "No GPU backend: there is no nvcc on the PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin")
  return()
endif()
set(CMAKE_CUDA_COMPILER ${NEUROEVO_NVCC})
if("$ENV{CUDAHOSTCXX}" STREQUAL "") # which names another one where nvcc is too old for this compiler
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
set(CMAKE_CUDA_ARCHITECTURES ${NEUROEVO_CUDA_ARCHS})
set(CMAKE_CUDA_STANDARD 17)
enable_language(CUDA)

# A driver runs what the CUDA of its major version or an earlier one has built.
find_program(NEUROEVO_NVIDIA_SMI nvidia-smi)
if(NEUROEVO_NVIDIA_SMI)
  execute_process(COMMAND ${NEUROEVO_NVIDIA_SMI} OUTPUT_VARIABLE driver ERROR_QUIET TIMEOUT 60)
  string(REGEX REPLACE "[.].*" "" major ${CMAKE_CUDA_COMPILER_VERSION})
  if(driver MATCHES "CUDA[A-Za-z ]* Version: *([0-9]+)([.][0-9]+)" AND CMAKE_MATCH_1 LESS major)
    message(NOTICE "The GPU backend will not run here: the NVIDIA driver supports CUDA ${CMAKE_MATCH_1}${CMAKE_MATCH_2}"
                   ", but ${NEUROEVO_NVCC} is of CUDA ${major}. Update the driver, or `make clean` and name the nvcc "
                   "of CUDA ${CMAKE_MATCH_1} in the variable CUDACXX")
  endif()
endif()

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS gpu/nvcc/*.cu population/cuda/*.cu population/cuda/*.cc)
add_library(neuroevo_cuda SHARED ${cuda_sources} c_api/cuda.cc)
target_include_directories(neuroevo_cuda PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(neuroevo_cuda PUBLIC neuroevo_core)
target_compile_definitions(neuroevo_cuda PUBLIC NEUROEVO_CUDA_BACKEND="cuda")
# --fmad=false: as -ffp-contract=off for the host; fused multiply-adds are written out.
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
