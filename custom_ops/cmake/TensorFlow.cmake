# The target `tensorflow`: the compile and link flags that NEUROEVO_PYTHON's TensorFlow names itself. Sets TF_VERSION,
# empty where there is no TensorFlow. Importing TensorFlow takes seconds, so its answer is cached until the version changes.
execute_process(
  COMMAND ${NEUROEVO_PYTHON} -c "from importlib.metadata import version; print(version('tensorflow'))"
  OUTPUT_VARIABLE TF_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(TF_VERSION STREQUAL "")
  return()
endif()
if(NOT NEUROEVO_TF_CACHE_KEY STREQUAL "${NEUROEVO_PYTHON} ${TF_VERSION}")
  message(STATUS "Asking TensorFlow ${TF_VERSION} for its compile and link flags")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env TF_CPP_MIN_LOG_LEVEL=3 ${NEUROEVO_PYTHON} -c
            "from tensorflow import sysconfig as s; print(';'.join(s.get_compile_flags() + s.get_link_flags()))"
    OUTPUT_VARIABLE tf_flags OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE tf_error RESULT_VARIABLE tf_result)
  if(NOT tf_result EQUAL 0)
    message(FATAL_ERROR "TensorFlow ${TF_VERSION} of ${NEUROEVO_PYTHON} cannot be imported:\n${tf_error}")
  endif()
  set(NEUROEVO_TF_FLAGS "${tf_flags}" CACHE INTERNAL "")
  set(NEUROEVO_TF_CACHE_KEY "${NEUROEVO_PYTHON} ${TF_VERSION}" CACHE INTERNAL "")
endif()

add_library(tensorflow INTERFACE)
foreach(flag ${NEUROEVO_TF_FLAGS})
  if(flag MATCHES "^-I(.*)")
    target_include_directories(tensorflow SYSTEM INTERFACE ${CMAKE_MATCH_1}) # SYSTEM: its warnings are not ours
  elseif(flag MATCHES "^-D")
    target_compile_options(tensorflow INTERFACE ${flag})
  elseif(flag MATCHES "^-L(.*)")
    target_link_directories(tensorflow INTERFACE ${CMAKE_MATCH_1})
  elseif(flag MATCHES "^-l")
    target_link_libraries(tensorflow INTERFACE ${flag})
  endif() # what is left is --std, which CMAKE_CXX_STANDARD sets
endforeach()
