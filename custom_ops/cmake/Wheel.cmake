# What a wheel holds of the build: the libraries, beside the package's Python files. A wheel that lacks one would play
# only some of the environments, or only without TensorFlow, so that all have to be there unless they are switched off.
foreach(wanted ATARI:neuroevo_atari MUJOCO:neuroevo_mujoco TF:neuroevo_tf_ops)
  string(REPLACE ":" ";" wanted ${wanted})
  list(GET wanted 0 option)
  list(GET wanted 1 library)
  if(NEUROEVO_${option} AND NOT TARGET ${library})
    message(FATAL_ERROR "lib${library}.so cannot be built, since ${NEUROEVO_PYTHON} lacks the package that it needs (see "
                        "above). pip brings it, unless --no-build-isolation was given; -C cmake.define.NEUROEVO_${option}=OFF "
                        "makes a wheel without it")
  endif()
endforeach()
install(DIRECTORY ${NEUROEVO_LIB_DIR}/ DESTINATION neuroevo/_lib USE_SOURCE_PERMISSIONS)
