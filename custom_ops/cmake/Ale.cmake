# The emulator library `ale`, built from the sources that fetch_ale.py unpacked into build/ (ale-py's own CMake files
# would also build its Python module, SDL and OpenCV). Sets ALE_VERSION.
file(READ ${NEUROEVO_ROOT}/pyproject.toml pyproject)
string(REGEX MATCH "\"ale-py==([0-9.]+)\"" matched "${pyproject}")
set(ALE_VERSION ${CMAKE_MATCH_1})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${NEUROEVO_ROOT}/pyproject.toml)
set(ale_root ${NEUROEVO_ROOT}/build/ale_py-${ALE_VERSION}/src)
if(SKBUILD) # `make build` does this itself
  execute_process(COMMAND ${NEUROEVO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/fetch_ale.py ${NEUROEVO_ROOT}/build
                  RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "The emulator's sources are missing (see above); -C cmake.define.NEUROEVO_ATARI=OFF omits it")
  endif()
endif()
if(NOT EXISTS ${ale_root}/ale/ale_interface.cpp)
  message(FATAL_ERROR "${ale_root}/ale does not exist: run `make setup`, or configure with -DNEUROEVO_ATARI=OFF")
endif()
find_package(ZLIB)
if(NOT ZLIB_FOUND)
  message(FATAL_ERROR "zlib.h is missing: apt-get install -y zlib1g-dev")
endif()

# version.hpp.in requires these variables, which are not used otherwise.
string(REPLACE "." ";" version_parts ${ALE_VERSION})
list(GET version_parts 0 ALE_VERSION_MAJOR)
list(GET version_parts 1 ALE_VERSION_MINOR)
list(GET version_parts 2 ALE_VERSION_PATCH)
set(ALE_VERSION_GIT_SHA unknown)
configure_file(${ale_root}/ale/version.hpp.in ${CMAKE_CURRENT_BINARY_DIR}/ale_generated/version.hpp)

# Link-time optimization of the emulator, if the compiler supports it.
set(NEUROEVO_LTO "")
if(NEUROEVO_SANITIZE STREQUAL "")
  include(CheckIPOSupported)
  check_ipo_supported(RESULT supported LANGUAGES CXX)
  if(supported)
    set(NEUROEVO_LTO -flto=auto)
  else()
    message(NOTICE "The emulator is built without link-time optimization: ${CMAKE_CXX_COMPILER} cannot link with -flto")
  endif()
endif()

# ale_compile(TARGET ARCH) sets the compile options of a target with ALE's sources.
function(ale_compile target arch)
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR}/ale_generated ${ale_root}
                             ${ale_root}/ale)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${arch})
  target_compile_options(${target} PRIVATE -w) # external code
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  if(NEUROEVO_LTO)
    # CMake then archives with gcc-ar, since plain ar may drop the link-time information.
    set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
  elseif(NEUROEVO_SANITIZE MATCHES undefined)
    # Only one of the 108 ROMs triggers a sanitizer: VideoCheckers copies an uninitialized bool.
    target_compile_options(${target} PRIVATE -fno-sanitize=bool)
  endif()
endfunction()

# The games' rules and scores, about a hundred small files, and the emulator itself, which dominates the run time.
file(GLOB game_sources ${ale_root}/ale/games/*.cpp ${ale_root}/ale/games/supported/*.cpp)
file(GLOB emulator_sources ${ale_root}/ale/*.cpp)
foreach(folder common emucore environment)
  file(GLOB folder_sources ${ale_root}/ale/${folder}/*.cpp ${ale_root}/ale/${folder}/*.cxx)
  list(APPEND emulator_sources ${folder_sources})
endforeach()
include(cmake/AleEdits.cmake)
# Our processor and television chip, which are compiled and profiled together with the emulator.
file(GLOB console_sources CONFIGURE_DEPENDS envs/atari/console/*.cc)
list(APPEND emulator_sources ${console_sources} core/fork.cc)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # The processor identifies its handlers by their distances, which requires that they are in one section.
  set_source_files_properties(envs/atari/console/cpu.cc PROPERTIES COMPILE_OPTIONS -fno-reorder-blocks-and-partition)
endif()
add_library(ale_games OBJECT ${game_sources})
ale_compile(ale_games neuroevo_arch)
if(NEUROEVO_SANITIZE STREQUAL "") # the games' code takes too little time to justify a longer build
  set_target_properties(ale_games PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  target_compile_options(ale_games PRIVATE -O1)
endif()
list(TRANSFORM NEUROEVO_LEVELS PREPEND "ale." OUTPUT_VARIABLE ale_libraries)
list(PREPEND ale_libraries ale)
foreach(target ${ale_libraries})
  add_library(${target} STATIC ${emulator_sources} $<TARGET_OBJECTS:ale_games>)
  string(REPLACE ale neuroevo_arch arch ${target})
  ale_compile(${target} ${arch})
  target_link_libraries(${target} PUBLIC ZLIB::ZLIB)
endforeach()

include(cmake/AleProfile.cmake)
ale_profile(${emulator_sources})
