# The emulator library `ale`, from the sources that fetch_ale.py put into build/ (ale-py's own CMake files would build its
# Python module, SDL and OpenCV too). Sets ALE_VERSION.
file(READ ${NEUROEVO_ROOT}/pyproject.toml pyproject)
string(REGEX MATCH "\"ale-py==([0-9.]+)\"" matched "${pyproject}")
set(ALE_VERSION ${CMAKE_MATCH_1})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${NEUROEVO_ROOT}/pyproject.toml)
set(ale_root ${NEUROEVO_ROOT}/build/ale_py-${ALE_VERSION}/src)
if(NOT EXISTS ${ale_root}/ale/ale_interface.cpp)
  message(FATAL_ERROR "There is no ${ale_root}/ale: run `make setup`, or configure with -DNEUROEVO_ATARI=OFF")
endif()
find_package(ZLIB REQUIRED)

# version.hpp.in also wants these; nothing reads them.
string(REPLACE "." ";" version_parts ${ALE_VERSION})
list(GET version_parts 0 ALE_VERSION_MAJOR)
list(GET version_parts 1 ALE_VERSION_MINOR)
list(GET version_parts 2 ALE_VERSION_PATCH)
set(ALE_VERSION_GIT_SHA unknown)
configure_file(${ale_root}/ale/version.hpp.in ${CMAKE_CURRENT_BINARY_DIR}/ale_generated/version.hpp)

file(GLOB ale_sources ${ale_root}/ale/*.cpp)
foreach(folder common emucore environment games games/supported)
  file(GLOB folder_sources ${ale_root}/ale/${folder}/*.cpp ${ale_root}/ale/${folder}/*.cxx)
  list(APPEND ale_sources ${folder_sources})
endforeach()
add_library(ale STATIC ${ale_sources})
target_include_directories(ale SYSTEM PUBLIC ${ale_root} ${ale_root}/ale ${CMAKE_CURRENT_BINARY_DIR}/ale_generated)
target_link_libraries(ale PUBLIC neuroevo_arch ZLIB::ZLIB)
target_compile_options(ale PRIVATE -w) # its warnings are not ours to mend
set_target_properties(ale PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
if(NEUROEVO_SANITIZE STREQUAL "")
  # CMake then archives with gcc-ar, which keeps the link-time information that plain ar may lose.
  set_target_properties(ale PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
elseif(NEUROEVO_SANITIZE MATCHES undefined)
  # Of all 108 ROMs one trips a sanitizer: VideoCheckers copies a bool that it never set. Everything else is checked.
  target_compile_options(ale PRIVATE -fno-sanitize=bool)
endif()
