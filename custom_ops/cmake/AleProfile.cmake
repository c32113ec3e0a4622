# Profile-guided optimization of the emulator: ale_profile(SOURCE...) compiles these sources a second time, counting
# which way every branch goes, plays a few games with that (the program ale_train), and has the targets of ale_libraries
# compiled with the counts, which are those of the oldest processor where there are several levels. All of it are rules
# with dependencies: only another compiler, other flags, sources or games start them again. Where it cannot work or is not
# wanted, these targets stay as they are, and a line says why.
set(NEUROEVO_PGO_FRAMES 4000) # of each game

function(ale_profile)
  # Different ones: cartridges of several kinds, paddle and joystick, empty and busy screens.
  set(games frostbite breakout pong seaquest asteroids gravitar kangaroo montezuma_revenge ms_pacman space_invaders)
  list(TRANSFORM games REPLACE "(.+)" "${NEUROEVO_ROMS}/\\1.bin" OUTPUT_VARIABLE roms)
  if(NOT NEUROEVO_PGO)
    set(why "NEUROEVO_PGO is off")
  elseif(NOT NEUROEVO_SANITIZE STREQUAL "")
    set(why "NEUROEVO_SANITIZE is ${NEUROEVO_SANITIZE}")
  elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set(why "this needs GCC, and the compiler is ${CMAKE_CXX_COMPILER_ID}")
  elseif(CMAKE_CROSSCOMPILING)
    set(why "what is built does not run here")
  endif()
  foreach(rom ${roms})
    if(NOT EXISTS ${rom} AND NOT why)
      set(why "there is no ROM '${rom}'")
    endif()
  endforeach()
  if(why)
    message(NOTICE "The emulator is built without profile-guided optimization: ${why}")
    return()
  endif()

  # What a profile is good for: this very compiler, asked every time since an upgrade keeps its name, and these flags.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -v ERROR_VARIABLE compiler OUTPUT_QUIET)
  set(flags "-march=${NEUROEVO_MARCH} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS}")
  set(key ${CMAKE_CURRENT_BINARY_DIR}/ale_profile.key)
  file(CONFIGURE OUTPUT ${key} CONTENT "${flags}\n${compiler}\n${NEUROEVO_PGO_FRAMES} frames of ${roms}\n" @ONLY)
  set(program ${CMAKE_CURRENT_SOURCE_DIR}/cmake/ale_train.cc)
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/ale_train.cmake)
  # What starts the training again also compiles `ale` again, which waits for it.
  set_property(SOURCE ${ARGN} APPEND PROPERTY OBJECT_DEPENDS ${key} ${program} ${script})

  add_executable(ale_train EXCLUDE_FROM_ALL ${program} ${ARGN} $<TARGET_OBJECTS:ale_games>)
  ale_compile(ale_train neuroevo_arch)
  target_link_libraries(ale_train PRIVATE ZLIB::ZLIB)
  target_compile_options(ale_train PRIVATE -fprofile-generate)
  target_link_options(ale_train PRIVATE -fprofile-generate -O1) # games are quick enough without

  # GCC keeps the counts of X.o in X.gcda beside it.
  set(objects ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles)
  list(TRANSFORM ale_libraries REPLACE "(.+)" "${objects}/\\1.dir" OUTPUT_VARIABLE to)
  set(profile ${CMAKE_CURRENT_BINARY_DIR}/ale_profile.stamp)
  add_custom_command(
    OUTPUT ${profile}
    COMMAND ${CMAKE_COMMAND} "-DTRAIN=$<TARGET_FILE:ale_train>;${NEUROEVO_PGO_FRAMES};${roms}"
            -DFROM=${objects}/ale_train.dir "-DTO=${to}" -P ${script}
    COMMAND ${CMAKE_COMMAND} -E touch ${profile}
    DEPENDS ale_train ${key} ${script}
    COMMENT "Playing games to profile the emulator; the compiler then optimizes it for what they do"
    VERBATIM)
  add_custom_target(ale_profile DEPENDS ${profile})
  foreach(target ${ale_libraries})
    add_dependencies(${target} ale_profile)
    # Partial: what no game used is compiled as if there were no profile, and not for size. Functions that are others at
    # other levels have none.
    target_compile_options(${target} PRIVATE -fprofile-use -fprofile-partial-training -Wno-coverage-mismatch)
  endforeach()
endfunction()
