# Profile-guided optimization of the emulator: ale_profile(SOURCE...) compiles these sources into the instrumented
# program ale_train, plays a few games with it, and compiles the targets of ale_libraries with the profile. If there are
# several levels, all use the profile of the oldest processor. These steps are build rules with dependencies: they only
# run again if the compiler, flags, sources or games change. If profiling is not possible or disabled, a message states
# the reason, and the targets are compiled without a profile.
set(NEUROEVO_PGO_FRAMES 4000) # frames per game

function(ale_profile)
  # A variety of games: several kinds of cartridges, paddle and joystick, empty and busy screens.
  set(games frostbite breakout pong seaquest asteroids gravitar kangaroo montezuma_revenge ms_pacman space_invaders)
  list(TRANSFORM games REPLACE "(.+)" "${NEUROEVO_ROMS}/\\1.bin" OUTPUT_VARIABLE roms)
  if(NOT NEUROEVO_PGO)
    set(why "NEUROEVO_PGO is off")
  elseif(NOT NEUROEVO_SANITIZE STREQUAL "")
    set(why "NEUROEVO_SANITIZE is ${NEUROEVO_SANITIZE}")
  elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set(why "it requires GCC, but the compiler is ${CMAKE_CXX_COMPILER_ID}")
  elseif(CMAKE_CROSSCOMPILING)
    set(why "cross-compiled programs cannot run during the build")
  endif()
  foreach(rom ${roms})
    if(NOT EXISTS ${rom} AND NOT why)
      set(why "the ROM '${rom}' does not exist")
    endif()
  endforeach()
  if(why)
    message(NOTICE "The emulator is built without profile-guided optimization: ${why}")
    return()
  endif()

  # A profile is valid for one compiler version (queried every time, since an upgrade keeps the name) and set of flags.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -v ERROR_VARIABLE compiler OUTPUT_QUIET)
  set(flags "-march=${NEUROEVO_MARCH} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS}")
  set(key ${CMAKE_CURRENT_BINARY_DIR}/ale_profile.key)
  file(CONFIGURE OUTPUT ${key} CONTENT "${flags}\n${compiler}\n${NEUROEVO_PGO_FRAMES} frames of ${roms}\n" @ONLY)
  set(program ${CMAKE_CURRENT_SOURCE_DIR}/cmake/ale_train.cc)
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/ale_train.cmake)
  # Changes that restart the training must also recompile `ale`, which depends on its result.
  set_property(SOURCE ${ARGN} APPEND PROPERTY OBJECT_DEPENDS ${key} ${program} ${script})

  add_executable(ale_train EXCLUDE_FROM_ALL ${program} ${ARGN} $<TARGET_OBJECTS:ale_games>)
  ale_compile(ale_train neuroevo_arch)
  target_link_libraries(ale_train PRIVATE ZLIB::ZLIB)
  target_compile_options(ale_train PRIVATE -fprofile-generate)
  target_link_options(ale_train PRIVATE -fprofile-generate -O1) # fast enough for the training

  # GCC stores the counts of X.o in X.gcda in the same folder.
  set(objects ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles)
  list(TRANSFORM ale_libraries REPLACE "(.+)" "${objects}/\\1.dir" OUTPUT_VARIABLE to)
  set(profile ${CMAKE_CURRENT_BINARY_DIR}/ale_profile.stamp)
  add_custom_command(
    OUTPUT ${profile}
    COMMAND ${CMAKE_COMMAND} "-DTRAIN=$<TARGET_FILE:ale_train>;${NEUROEVO_PGO_FRAMES};${roms}"
            -DFROM=${objects}/ale_train.dir "-DTO=${to}" -P ${script}
    COMMAND ${CMAKE_COMMAND} -E touch ${profile}
    DEPENDS ale_train ${key} ${script}
    COMMENT "Playing games to profile the emulator for profile-guided optimization"
    VERBATIM)
  add_custom_target(ale_profile DEPENDS ${profile})
  foreach(target ${ale_libraries})
    add_dependencies(${target} ale_profile)
    # Partial training: code that no game used is compiled as without a profile, not for size. Functions that differ
    # between levels have no profile.
    target_compile_options(${target} PRIVATE -fprofile-use -fprofile-partial-training -Wno-coverage-mismatch)
  endforeach()
endfunction()
