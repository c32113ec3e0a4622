// Decoded machine code: for each byte of a memory page the instruction that starts there, with its operand and its
// handler in Cpu::execute. Emulators of the same game share these pages.
#ifndef NEUROEVO_ENVS_ATARI_CONSOLE_DECODED_PAGE_H_
#define NEUROEVO_ENVS_ATARI_CONSOLE_DECODED_PAGE_H_

#include <array>
#include <cstdint>

namespace neuroevo {

constexpr int kCodePageBytes = 64;  // the page size of ALE's system
constexpr int kLongest = 3;         // maximum bytes per instruction
constexpr uint8_t kWsync = 0x02;    // the television chip's register that makes the processor wait for a line's end

// Handler indices: an instruction's opcode, unless a specialized handler applies.
enum InstructionHandler {
  kOpcodeHandlers = 0,    // by opcode
  kDeviceHandlers = 256,  // zero-page addresses that are not memory
  kFarBranches = 512,     // branches to another page, by the opcode's highest three bits
  kTimerWaits = 520,      // loads of the timer in polling loops, by the load's opcode
  kShortWait = 528,       // writes to WSYNC with an address of one byte, and of two
  kLongWait,
  kStepHandler,  // not decoded
  kNextPage,     // after the page's end
  kReenter,      // after a bank switch
  kStop,
  kInstructionHandlers
};

struct Instruction {
  int32_t handler;   // offset of the handler's code from that of opcode 0
  uint16_t operand;  // for branches, the distance of the target
  uint8_t opcode;
  uint8_t taken_cycles;  // of branches
};

using DecodedPage = std::array<Instruction, kCodePageBytes + kLongest>;

// Offsets of the handlers in Cpu::execute.
using HandlerTable = std::array<int32_t, kInstructionHandlers>;

// Decode `page`, 64 bytes. `next` is the following page, or null if that is not memory; `quarter` is the page's index
// within its 256 bytes, since branches that leave them take longer.
const DecodedPage* Decode(const HandlerTable& handlers, const uint8_t* page, const uint8_t* next, int quarter);

// Return a page that is not decoded, whose instructions are executed one by one.
const DecodedPage* UndecodedPage(const HandlerTable& handlers);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_CONSOLE_DECODED_PAGE_H_
