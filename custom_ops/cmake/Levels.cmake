# NEUROEVO_ARCH=portable: libraries for every x86-64 processor. They are compiled for the oldest one; those that take the
# time are compiled again, whole, for each of the levels of neuroevo/native/cpu.py, into a folder of the level's name
# beside the others, and Python loads the best that the processor has. One process never has code of two levels of one
# library, so that no linker can give the one's inline functions to the other.
set(NEUROEVO_MARCH ${NEUROEVO_ARCH}) # -march of what is not in a level's folder
set(NEUROEVO_LEVELS "")
if(NEUROEVO_ARCH STREQUAL portable)
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    message(FATAL_ERROR "NEUROEVO_ARCH is portable, which is for x86_64, and this is ${CMAKE_SYSTEM_PROCESSOR}; expected native")
  endif()
  set(NEUROEVO_MARCH x86-64)
  set(NEUROEVO_LEVELS x86-64-v3 x86-64-v4)
  set(NEUROEVO_VNNI_LEVELS x86-64-v3-vnni x86-64-v4-vnni) # whose instructions only integer networks use
endif()

# neuroevo_arch_library(NAME FLAG...): an interface library with the instructions of a level.
function(neuroevo_arch_library name)
  add_library(${name} INTERFACE)
  target_compile_options(${name} INTERFACE ${ARGN})
  target_link_options(${name} INTERFACE ${ARGN}) # where code is optimized while it is linked
endfunction()
neuroevo_arch_library(neuroevo_arch -march=${NEUROEVO_MARCH})
if(NEUROEVO_LEVELS)
  neuroevo_arch_library(neuroevo_arch.x86-64-v3 -march=x86-64-v3)
  neuroevo_arch_library(neuroevo_arch.x86-64-v3-vnni -march=x86-64-v3 -mavxvnni)
  neuroevo_arch_library(neuroevo_arch.x86-64-v4 -march=x86-64-v4)
  neuroevo_arch_library(neuroevo_arch.x86-64-v4-vnni -march=x86-64-v4 -mavx512vnni)
endif()
foreach(level x86-64-v3 x86-64-v3-vnni x86-64-v4 x86-64-v4-vnni) # of an earlier build
  if(NOT level IN_LIST NEUROEVO_LEVELS AND NOT level IN_LIST NEUROEVO_VNNI_LEVELS)
    file(REMOVE_RECURSE ${NEUROEVO_LIB_DIR}/${level})
  endif()
endforeach()

# neuroevo_for_levels(NAME LEVEL...): a finished library NAME again for each of these levels, as NAME.LEVEL. Of what it
# links, TARGET.LEVEL takes the place of TARGET where there is one; other libraries of ours are found in the process,
# whichever level's they are.
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
