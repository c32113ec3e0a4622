# The few places where the emulator is changed before it is compiled, in copies. An edit whose text is not found as
# often as expected ends the configuration: another version of ALE needs another look.

# ale_edit(FILE TIMES BEFORE AFTER): the edits of a file add up.
function(ale_edit file times before after)
  if(file IN_LIST edited_files)
    get_property(edited GLOBAL PROPERTY ALE_EDITED_${file})
  else()
    file(READ ${ale_root}/ale/${file} edited)
    set(edited_files ${edited_files} ${file} PARENT_SCOPE)
  endif()
  string(REPLACE "${before}" "" without "${edited}")
  string(LENGTH "${edited}" length)
  string(LENGTH "${without}" length_without)
  string(LENGTH "${before}" length_before)
  math(EXPR found "(${length} - ${length_without}) / ${length_before}")
  if(NOT found EQUAL times)
    message(FATAL_ERROR "ALE ${ALE_VERSION}: found this ${found} times in ${file}, expected ${times}:\n${before}")
  endif()
  string(REPLACE "${before}" "${after}" edited "${edited}")
  set_property(GLOBAL PROPERTY ALE_EDITED_${file} "${edited}")
endfunction()

set(edited_files "")

# Scanlines with several objects are drawn many pixels at a time. (The second place is a mode that nothing turns on.)
ale_edit(emucore/TIA.cxx 1 "#include \"ale/emucore/Sound.hxx\"\n"
         "#include \"ale/emucore/Sound.hxx\"\n#include \"envs/atari/pixels.h\"\n")
set(loop "        for(; myFramePointer < ending; ++myFramePointer, ++hpos)\n")
ale_edit(emucore/TIA.cxx 2 "${loop}" "
        const auto on = [this](uint8_t bit) { return static_cast<uint8_t>(myEnabledObjects & bit ? 0xff : 0); };
        myCollision |= neuroevo::DrawPixels(
            {&myCurrentPFMask[hpos], &myCurrentP0Mask[hpos], &myCurrentP1Mask[hpos], &myCurrentM0Mask[hpos],
             &myCurrentM1Mask[hpos], &myCurrentBLMask[hpos], myPF, myCurrentGRP0, myCurrentGRP1, on(myM0Bit),
             on(myM1Bit), on(myBLBit), 80 - static_cast<int>(hpos)},
            {ourCollisionTable, &myPriorityEncoder[0][myPlayfieldPriorityAndScore],
             &myPriorityEncoder[1][myPlayfieldPriorityAndScore], myColor},
            static_cast<int>(ending - myFramePointer), myFramePointer);
        myFramePointer = ending;
${loop}")

# The console's processor and television chip may be ours instead (envs/atari/console): which ones is ALE's setting "cpu".
ale_edit(emucore/System.hxx 1 "#include \"ale/emucore/Random.hxx\"\n"
         "#include \"ale/emucore/Random.hxx\"\n\nnamespace neuroevo { class Cpu; }\n")
ale_edit(emucore/System.hxx 1 "class System\n{\n" "class System\n{\n    friend class ::neuroevo::Cpu;\n")
ale_edit(emucore/M6532.hxx 1 "#include \"ale/emucore/Random.hxx\"\n"
         "#include \"ale/emucore/Random.hxx\"\n\nnamespace neuroevo { class Cpu; }\n")
ale_edit(emucore/M6532.hxx 1 "class M6532 : public Device\n{\n" "class M6532 : public Device\n{\n    friend class ::neuroevo::Cpu;\n")
ale_edit(emucore/TIA.hxx 1 "#include \"ale/emucore/MediaSrc.hxx\"\n"
         "#include \"ale/emucore/MediaSrc.hxx\"\n\nnamespace neuroevo { class Tia; }\n")
ale_edit(emucore/TIA.hxx 1 "friend class TIADebug;" "friend class TIADebug;\n    friend class ::neuroevo::Tia;")
ale_edit(emucore/Console.cxx 1 "#include \"ale/emucore/TIA.hxx\"\n"
         "#include \"ale/emucore/TIA.hxx\"\n#include \"envs/atari/console/cpu.h\"\n#include \"envs/atari/console/tia.h\"\n")
ale_edit(emucore/Console.cxx 1 "  M6502* m6502;\n  if("
         "  M6502* m6502;\n  const bool ours = myOSystem->settings().getString(\"cpu\") == \"neuroevo\";\n  if(ours) {
    m6502 = new neuroevo::Cpu();\n  }\n  else if(")
ale_edit(emucore/Console.cxx 1 "TIA *tia = new TIA(" "TIA *tia = ours ? new neuroevo::Tia(*this, myOSystem->settings()) : new TIA(")

# Tables for an average of two frames take 30 ms of every emulator's start; we never ask for that average.
ale_edit(environment/phosphor_blend.cpp 1 "\n  makeAveragePalette();\n"
         "\n  if(osystem->settings().getBool(\"color_averaging\")) makeAveragePalette();\n")

# Where memory runs out while a console's state is saved or restored, ALE goes on with part of it, or throws a text. What
# it has saved itself it can restore, so nothing else can be the reason.
ale_edit(environment/ale_state.cpp 1 "  osystem->console().system().loadState(md5, deser);"
         "  if(!osystem->console().system().loadState(md5, deser)) throw std::bad_alloc();")
ale_edit(environment/ale_state.cpp 1 "  osystem->console().system().saveState(md5, ser);"
         "  if(!osystem->console().system().saveState(md5, ser)) throw std::bad_alloc();")
ale_edit(emucore/Serializer.cxx 2 "throw \"Serializer: file write failed\";" "throw std::bad_alloc();")

# Each is written once: one that was written edit by edit would be new, and compiled anew, at every configuration.
foreach(file ${edited_files})
  get_filename_component(name ${file} NAME)
  get_property(edited GLOBAL PROPERTY ALE_EDITED_${file})
  if(name MATCHES "\\.hxx$") # found before ALE's own
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/ale_generated/ale/${file} CONTENT "@edited@" @ONLY)
    continue()
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/ale_generated/${name} CONTENT "@edited@" @ONLY)
  list(FIND emulator_sources ${ale_root}/ale/${file} place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${ale_root}/ale/${file} is not among the sources that are compiled")
  endif()
  list(REMOVE_AT emulator_sources ${place})
  list(APPEND emulator_sources ${CMAKE_CURRENT_BINARY_DIR}/ale_generated/${name})
endforeach()
