# Edits of the emulator, applied to copies of its sources before they are compiled. If the text of an edit is not found
# as often as expected, the configuration fails, so that the edits are reviewed for every new version of ALE.

# ale_edit(FILE TIMES BEFORE AFTER) replaces a text that occurs TIMES times. A file may have several edits.
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
    message(FATAL_ERROR "ALE ${ALE_VERSION}: found this text ${found} times in ${file}, expected ${times}:\n${before}")
  endif()
  string(REPLACE "${before}" "${after}" edited "${edited}")
  set_property(GLOBAL PROPERTY ALE_EDITED_${file} "${edited}")
endfunction()

set(edited_files "")

# Draw scanlines with several objects many pixels at once. (The second occurrence belongs to a mode that is never used.)
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

# ALE's setting "cpu" selects between ALE's processor and television chip and ours (envs/atari/console).
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

# The tables for averaging two frames take 30 ms at every start of an emulator; we never average frames this way.
ale_edit(environment/phosphor_blend.cpp 1 "\n  makeAveragePalette();\n"
         "\n  if(osystem->settings().getBool(\"color_averaging\")) makeAveragePalette();\n")

# If memory runs out while a console's state is saved or restored, ALE continues with a partial state or throws a
# string. States saved by ALE can be restored, so running out of memory is the only possible reason for a failure.
ale_edit(environment/ale_state.cpp 1 "  osystem->console().system().loadState(md5, deser);"
         "  if(!osystem->console().system().loadState(md5, deser)) throw std::bad_alloc();")
ale_edit(environment/ale_state.cpp 1 "  osystem->console().system().saveState(md5, ser);"
         "  if(!osystem->console().system().saveState(md5, ser)) throw std::bad_alloc();")
ale_edit(emucore/Serializer.cxx 2 "throw \"Serializer: file write failed\";" "throw std::bad_alloc();")

# Write each file once: writing it after every edit would change it, and recompile it, at every configuration.
foreach(file ${edited_files})
  get_filename_component(name ${file} NAME)
  get_property(edited GLOBAL PROPERTY ALE_EDITED_${file})
  if(name MATCHES "\\.hxx$") # precedes ALE's own header on the include path
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/ale_generated/ale/${file} CONTENT "@edited@" @ONLY)
    continue()
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/ale_generated/${name} CONTENT "@edited@" @ONLY)
  list(FIND emulator_sources ${ale_root}/ale/${file} place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${ale_root}/ale/${file} is not one of the compiled sources")
  endif()
  list(REMOVE_AT emulator_sources ${place})
  list(APPEND emulator_sources ${CMAKE_CURRENT_BINARY_DIR}/ale_generated/${name})
endforeach()
