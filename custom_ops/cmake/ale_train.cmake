# cmake -DTRAIN=COMMAND -DFROM=FOLDER -DTO=FOLDER -P ale_train.cmake: runs the counting program, starting from nothing,
# and puts the counts where the compiler looks for them: from beside its own objects to beside those of `ale`.
file(GLOB_RECURSE old ${FROM}/*.gcda ${TO}/*.gcda)
if(old)
  file(REMOVE ${old}) # or the program would add to them
endif()
execute_process(COMMAND ${TRAIN} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "Profiling the emulator failed (${result}); make setup PGO=OFF does without")
endif()
file(GLOB_RECURSE counts RELATIVE ${FROM} ${FROM}/*.gcda)
if(NOT counts)
  message(FATAL_ERROR "Profiling the emulator left no counts in ${FROM}; make setup PGO=OFF does without")
endif()
foreach(count ${counts})
  configure_file(${FROM}/${count} ${TO}/${count} COPYONLY)
endforeach()
