# The target `tensorflow`: the compile and link flags reported by the TensorFlow of NEUROEVO_PYTHON. Sets TF_VERSION,
# empty if TensorFlow is not installed. Importing TensorFlow takes seconds, so the flags are cached for each version.
execute_process(
  COMMAND ${NEUROEVO_PYTHON} -c "from importlib.metadata import version; print(version('tensorflow'))"
  OUTPUT_VARIABLE TF_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(TF_VERSION STREQUAL "")
  return()
endif()
if(NOT NEUROEVO_TF_CACHE_KEY STREQUAL "${NEUROEVO_PYTHON} ${TF_VERSION}")
  message(STATUS "Querying the compile and link flags of TensorFlow ${TF_VERSION}")
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
    target_include_directories(tensorflow SYSTEM INTERFACE ${CMAKE_MATCH_1}) # SYSTEM: no warnings for external code
  elseif(flag MATCHES "^-D")
    target_compile_options(tensorflow INTERFACE ${flag})
  elseif(flag MATCHES "^-L(.*)")
    target_link_directories(tensorflow INTERFACE ${CMAKE_MATCH_1})
  elseif(flag MATCHES "^-l")
    target_link_libraries(tensorflow INTERFACE ${flag})
  endif() # the remaining flag is --std, which CMAKE_CXX_STANDARD sets
endforeach()
