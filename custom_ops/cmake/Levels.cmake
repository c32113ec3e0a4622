# NEUROEVO_ARCH=portable: libraries for every x86-64 processor. All libraries are compiled for the oldest processor.
# Those that dominate the run time are also compiled for each level of neuroevo/native/cpu.py, into a subfolder with the
# level's name, and Python loads the best level that the processor supports. A process never loads two levels of one
# library, so the linker cannot resolve inline functions of one level to code of another.
set(NEUROEVO_MARCH ${NEUROEVO_ARCH}) # -march of the libraries outside the levels' folders
set(NEUROEVO_LEVELS "")
if(NEUROEVO_ARCH STREQUAL portable)
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    message(FATAL_ERROR "NEUROEVO_ARCH is portable, which requires x86_64, but this is ${CMAKE_SYSTEM_PROCESSOR}; use native")
  endif()
  set(NEUROEVO_MARCH x86-64)
  set(NEUROEVO_LEVELS x86-64-v3 x86-64-v4)
  set(NEUROEVO_VNNI_LEVELS x86-64-v3-vnni x86-64-v4-vnni) # only integer networks use their additional instructions
endif()

# neuroevo_arch_library(NAME FLAG...) adds an interface library with the compile flags of a level.
function(neuroevo_arch_library name)
  add_library(${name} INTERFACE)
  target_compile_options(${name} INTERFACE ${ARGN})
  target_link_options(${name} INTERFACE ${ARGN}) # for link-time optimization
endfunction()
neuroevo_arch_library(neuroevo_arch -march=${NEUROEVO_MARCH})
if(NEUROEVO_LEVELS)
  neuroevo_arch_library(neuroevo_arch.x86-64-v3 -march=x86-64-v3)
  neuroevo_arch_library(neuroevo_arch.x86-64-v3-vnni -march=x86-64-v3 -mavxvnni)
  neuroevo_arch_library(neuroevo_arch.x86-64-v4 -march=x86-64-v4)
  neuroevo_arch_library(neuroevo_arch.x86-64-v4-vnni -march=x86-64-v4 -mavx512vnni)
endif()
foreach(level x86-64-v3 x86-64-v3-vnni x86-64-v4 x86-64-v4-vnni) # remove folders of an earlier build
  if(NOT level IN_LIST NEUROEVO_LEVELS AND NOT level IN_LIST NEUROEVO_VNNI_LEVELS)
    file(REMOVE_RECURSE ${NEUROEVO_LIB_DIR}/${level})
  endif()
endforeach()

# neuroevo_for_levels(NAME LEVEL...) adds a copy NAME.LEVEL of the fully defined library NAME for each level. It links
# TARGET.LEVEL in place of TARGET if that target exists. Other libraries of neuroevo are resolved in the process,
# whatever their level.
function(neuroevo_for_levels name)
  foreach(level ${ARGN})
    set(copy ${name}.${level})
    get_target_property(sources ${name} SOURCES)
    add_library(${copy} SHARED ${sources})
    foreach(property INCLUDE_DIRECTORIES COMPILE_OPTIONS LINK_OPTIONS LINK_LIBRARIES BUILD_WITH_INSTALL_RPATH INSTALL_RPATH)
      get_target_property(values ${name} ${property})
      if(values STREQUAL "values-NOTFOUND")
        continue()
      endif()
      set(own "")
      foreach(value ${values})
        if(property STREQUAL LINK_LIBRARIES AND TARGET ${value}.${level} AND NOT value STREQUAL neuroevo_core)
          set(value ${value}.${level})
        endif()
        list(APPEND own "${value}")
      endforeach()
      set_target_properties(${copy} PROPERTIES ${property} "${own}")
    endforeach()
    set_target_properties(${copy} PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${NEUROEVO_LIB_DIR}/${level})
  endforeach()
endfunction()
