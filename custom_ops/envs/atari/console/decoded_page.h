// Machine code that the processor has looked at once: for each byte of a page of memory the instruction that begins
// there, with its operand and where in Cpu::execute it is carried out. Emulators of the same game share these pages.
#ifndef NEUROEVO_ENVS_ATARI_CONSOLE_DECODED_PAGE_H_
#define NEUROEVO_ENVS_ATARI_CONSOLE_DECODED_PAGE_H_

#include <array>
#include <cstdint>

namespace neuroevo {

constexpr int kCodePageBytes = 64;  // as a page of ALE's system
constexpr int kLongest = 3;         // bytes of an instruction
constexpr uint8_t kWsync = 0x02;    // the television chip's register that makes the processor wait for a line's end

// Where an instruction is carried out: by its number, unless the decoder knows more.
enum InstructionHandler {
  kOpcodeHandlers = 0,    // by its number
  kDeviceHandlers = 256,  // of the zero page, where no memory is
  kFarBranches = 512,     // to another page; by the number's highest three bits
  kTimerWaits = 520,      // the same
  kShortWait = 528,       // a write to WSYNC with an address of one byte, and of two
  kLongWait,
  kStepHandler,  // what is not decoded
  kNextPage,     // after the page's end
  kReenter,      // after the pages were exchanged
  kStop,
  kInstructionHandlers
};

struct Instruction {
  int32_t handler;   // the distance of its code from that of instruction 0
  uint16_t operand;  // of branches, how far the next instruction is
  uint8_t opcode;
  uint8_t taken_cycles;  // of branches
};

using DecodedPage = std::array<Instruction, kCodePageBytes + kLongest>;

// Where in Cpu::execute the handlers are.
using HandlerTable = std::array<int32_t, kInstructionHandlers>;

// Decodes `page`, 64 bytes. `next` is what follows it, or null where that is no memory; `quarter` is which part of 256
// bytes the page is, since branches take longer out of these.
const DecodedPage* Decode(const HandlerTable& handlers, const uint8_t* page, const uint8_t* next, int quarter);

// A page of which nothing is known, whose instructions are carried out one by one.
const DecodedPage* UndecodedPage(const HandlerTable& handlers);

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_CONSOLE_DECODED_PAGE_H_
