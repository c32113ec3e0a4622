# The emulator library `ale`, from the sources that fetch_ale.py put into build/ (ale-py's own CMake files would build its
# Python module, SDL and OpenCV too). Sets ALE_VERSION.
file(READ ${NEUROEVO_ROOT}/pyproject.toml pyproject)
string(REGEX MATCH "\"ale-py==([0-9.]+)\"" matched "${pyproject}")
set(ALE_VERSION ${CMAKE_MATCH_1})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${NEUROEVO_ROOT}/pyproject.toml)
set(ale_root ${NEUROEVO_ROOT}/build/ale_py-${ALE_VERSION}/src)
if(SKBUILD) # `make build` has done this
  execute_process(COMMAND ${NEUROEVO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/fetch_ale.py ${NEUROEVO_ROOT}/build
                  RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "The emulator's sources are missing (see above); -C cmake.define.NEUROEVO_ATARI=OFF does without")
  endif()
endif()
if(NOT EXISTS ${ale_root}/ale/ale_interface.cpp)
  message(FATAL_ERROR "There is no ${ale_root}/ale: run `make setup`, or configure with -DNEUROEVO_ATARI=OFF")
endif()
find_package(ZLIB)
if(NOT ZLIB_FOUND)
  message(FATAL_ERROR "zlib.h is missing: apt-get install -y zlib1g-dev")
endif()

# version.hpp.in also wants these; nothing reads them.
string(REPLACE "." ";" version_parts ${ALE_VERSION})
list(GET version_parts 0 ALE_VERSION_MAJOR)
list(GET version_parts 1 ALE_VERSION_MINOR)
list(GET version_parts 2 ALE_VERSION_PATCH)
set(ALE_VERSION_GIT_SHA unknown)
configure_file(${ale_root}/ale/version.hpp.in ${CMAKE_CURRENT_BINARY_DIR}/ale_generated/version.hpp)

# What links the emulator also optimizes it, where the compiler came with all that this takes.
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

# ale_compile(TARGET ARCH): how all of ALE is compiled.
function(ale_compile target arch)
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR}/ale_generated ${ale_root}
                             ${ale_root}/ale)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${arch})
  target_compile_options(${target} PRIVATE -w) # its warnings are not ours to mend
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  if(NEUROEVO_LTO)
    # CMake then archives with gcc-ar, which keeps the link-time information that plain ar may lose.
    set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
  elseif(NEUROEVO_SANITIZE MATCHES undefined)
    # Of all 108 ROMs one trips a sanitizer: VideoCheckers copies a bool that it never set. Everything else is checked.
    target_compile_options(${target} PRIVATE -fno-sanitize=bool)
  endif()
endfunction()

# The games' rules and scores, a hundred small files, and the emulator proper, which takes the time.
file(GLOB game_sources ${ale_root}/ale/games/*.cpp ${ale_root}/ale/games/supported/*.cpp)
file(GLOB emulator_sources ${ale_root}/ale/*.cpp)
foreach(folder common emucore environment)
  file(GLOB folder_sources ${ale_root}/ale/${folder}/*.cpp ${ale_root}/ale/${folder}/*.cxx)
  list(APPEND emulator_sources ${folder_sources})
endforeach()
include(cmake/AleEdits.cmake)
# Our processor and television chip, which are compiled and profiled with it.
file(GLOB console_sources CONFIGURE_DEPENDS envs/atari/console/*.cc)
list(APPEND emulator_sources ${console_sources} core/fork.cc)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # The processor's handlers are told apart by their distances, which need one section.
  set_source_files_properties(envs/atari/console/cpu.cc PROPERTIES COMPILE_OPTIONS -fno-reorder-blocks-and-partition)
endif()
add_library(ale_games OBJECT ${game_sources})
ale_compile(ale_games neuroevo_arch)
if(NEUROEVO_SANITIZE STREQUAL "") # they take no time worth a longer build
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
