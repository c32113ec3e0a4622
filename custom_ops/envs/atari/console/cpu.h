// The console's processor, a 6507, as fast as we can interpret it. It takes the place of ALE's and is equal to it from
// one frame to the next: registers, memory, cycles, and what every device sees.
//
// Machine code is decoded once (decoded_page.h). What that leaves out, such as code in a cartridge's memory or beside
// addresses that exchange its banks, ALE's processor carries out instruction by instruction.
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

  // Runs until a device stops the processor, it has run this many instructions, or it meets one that it does not know,
  // for which it returns false. As in ALE, an instruction's cycles are over before its first access to memory.
  bool execute(uint32_t instructions) override;

 private:
  static constexpr int kPages = 128, kCartridgePages = 64;  // of all memory; the cartridge has the second half

  // What the cartridge shows, and the code there, decoded once it is reached.
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
  bool exchanged_ = false;  // the cartridge's pages, by the last access
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_CONSOLE_CPU_H_
