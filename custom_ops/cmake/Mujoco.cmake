# The target `mujoco`: headers and library of the mujoco wheel of NEUROEVO_PYTHON. Sets MUJOCO_VERSION, MUJOCO_ROOT (the
# folder of the library, which contains `include`) and MUJOCO_ASSETS (Gymnasium's models, for native tests). They are
# empty if the package is not installed.
execute_process(
  COMMAND ${NEUROEVO_PYTHON} -c
          "from importlib.util import find_spec as f; print(f('mujoco').submodule_search_locations[0])"
  OUTPUT_VARIABLE MUJOCO_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(GLOB mujoco_library ${MUJOCO_ROOT}/libmujoco.so.*)
if(MUJOCO_ROOT STREQUAL "" OR mujoco_library STREQUAL "")
  return()
endif()
string(REGEX REPLACE ".*[.]so[.]" "" MUJOCO_VERSION ${mujoco_library})

add_library(mujoco SHARED IMPORTED)
set_target_properties(mujoco PROPERTIES IMPORTED_LOCATION ${mujoco_library})
target_include_directories(mujoco SYSTEM INTERFACE ${MUJOCO_ROOT}/include)

execute_process(
  COMMAND ${NEUROEVO_PYTHON} -c
          "from importlib.util import find_spec as f; print(f('gymnasium').submodule_search_locations[0] + '/envs/mujoco/assets')"
  OUTPUT_VARIABLE MUJOCO_ASSETS OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
