// Fast interpreter of the console's processor, a 6507. It replaces ALE's and is equivalent to it at frame boundaries:
// registers, memory, cycles, and all accesses to devices.
//
// Machine code is decoded once (decoded_page.h). ALE's processor executes the remaining code, such as code in a
// cartridge's RAM or next to addresses that switch banks, instruction by instruction.
#ifndef NEUROEVO_ENVS_ATARI_CONSOLE_CPU_H_
#define NEUROEVO_ENVS_ATARI_CONSOLE_CPU_H_

#include <ale/emucore/M6502Low.hxx>
#include <ale/emucore/M6532.hxx>
#include <ale/emucore/System.hxx>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "envs/atari/console/decoded_page.h"
#include "envs/atari/console/tia.h"

namespace neuroevo {

class Cpu final : public ale::stella::M6502Low {
 public:
  Cpu() : M6502Low(/*systemCyclesPerProcessorCycle=*/1) {}

  // Run until a device stops the processor, this many instructions have run, or an unsupported instruction occurs, for
  // which it returns false. As in ALE, an instruction's cycles are counted before its first memory access.
  bool execute(uint32_t instructions) override;

 private:
  static constexpr int kPages = 128, kCartridgePages = 64;  // all pages; the cartridge has the second half

  // The cartridge's visible memory and its code, decoded when it is reached.
  struct View {
    std::array<const uint8_t*, kCartridgePages> memory;
    std::array<const DecodedPage*, kPages> code;
  };

  bool FindDevices();
  bool SynchronizeView();
  const DecodedPage* DecodeHere(uint16_t address);
  uint8_t ReadDevice(uint16_t address, uint32_t cycles, uint8_t bus);
  uint32_t WriteDevice(uint16_t address, uint8_t value, uint32_t cycles);
  uint32_t TimerLoops(const Instruction& load, uint32_t cycles) const;

  enum class Devices { kUnknown, kPlain, kOthers } devices_ = Devices::kUnknown;
  Tia* tia_ = nullptr;
  ale::stella::M6532* riot_ = nullptr;
  uint8_t* ram_ = nullptr;  // [128]
  const HandlerTable* handlers_ = nullptr;
  std::vector<std::unique_ptr<View>> views_;
  View* view_ = nullptr;
  bool exchanged_ = false;  // whether the last access switched the cartridge's banks
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_CONSOLE_CPU_H_
