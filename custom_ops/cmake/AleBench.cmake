# The benchmark ale_bench, which compares environments with the bare emulator. Built by `ninja -C build/native
# ale_bench`.
add_executable(ale_bench EXCLUDE_FROM_ALL ${NEUROEVO_ROOT}/experiments/benchmarks/native/ale_bench.cc)
target_compile_options(ale_bench PRIVATE -Wall -Wextra $<$<BOOL:${NEUROEVO_WERROR}>:-Werror>)
target_link_libraries(ale_bench PRIVATE neuroevo_atari neuroevo_arch ale)
if(NEUROEVO_LTO)
  target_link_options(ale_bench PRIVATE ${NEUROEVO_LTO} -O3)
endif()
