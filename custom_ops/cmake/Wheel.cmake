# Installs the libraries into the wheel, next to the package's Python files. A wheel without one of them would lack some
# environments or TensorFlow support, so all are required unless they are disabled.
foreach(wanted ATARI:neuroevo_atari MUJOCO:neuroevo_mujoco TF:neuroevo_tf_ops)
  string(REPLACE ":" ";" wanted ${wanted})
  list(GET wanted 0 option)
  list(GET wanted 1 library)
  if(NEUROEVO_${option} AND NOT TARGET ${library})
    message(FATAL_ERROR "lib${library}.so cannot be built because ${NEUROEVO_PYTHON} lacks a required package (see above). "
                        "pip installs it unless --no-build-isolation is set; -C cmake.define.NEUROEVO_${option}=OFF builds "
                        "a wheel without this library")
  endif()
endforeach()
install(DIRECTORY ${NEUROEVO_LIB_DIR}/ DESTINATION neuroevo/_lib USE_SOURCE_PERMISSIONS)
