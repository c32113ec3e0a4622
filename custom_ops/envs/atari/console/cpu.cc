// The instructions are described in MOS Technology's programming manual of 1976 and, if undocumented there, in J.
// West's and M. Mäkelä's "Documentation for the NMOS 65xx/85xx Instruction Set" (1994). Where these leave a choice, the
// behavior is ALE's, with which tests compare it: only the cycles of page crossings are counted late; a pointer at 0xff
// has its high byte at 0x100; decimal mode sets N, V and Z from the decimal result.
#include "envs/atari/console/cpu.h"

#include <algorithm>

#include "envs/atari/console/registers.h"

namespace neuroevo {
namespace {

using Page = ale::stella::System::PageAccess;

constexpr int kPageBits = 6, kPageMask = 63;  // pages of the system's page table
constexpr uint16_t kAddressMask = 0x1fff;
constexpr int kReserve = 2 * kCodePageBytes;  // instructions that may run between checks of the instruction limit

// Cycles of each instruction without the extra cycles of taken branches and page crossings.
constexpr uint8_t kCycles[256] = {
    7, 6, 2, 8, 3, 3, 5, 5, 3, 2, 2, 2, 4, 4, 6, 6,  // 0
    2, 5, 2, 8, 4, 4, 6, 6, 2, 4, 2, 7, 4, 4, 7, 7,  // 1
    6, 6, 2, 8, 3, 3, 5, 5, 4, 2, 2, 2, 4, 4, 6, 6,  // 2
    2, 5, 2, 8, 4, 4, 6, 6, 2, 4, 2, 7, 4, 4, 7, 7,  // 3
    6, 6, 2, 8, 3, 3, 5, 5, 3, 2, 2, 2, 3, 4, 6, 6,  // 4
    2, 5, 2, 8, 4, 4, 6, 6, 2, 4, 2, 7, 4, 4, 7, 7,  // 5
    6, 6, 2, 8, 3, 3, 5, 5, 4, 2, 2, 2, 5, 4, 6, 6,  // 6
    2, 5, 2, 8, 4, 4, 6, 6, 2, 4, 2, 7, 4, 4, 7, 7,  // 7
    2, 6, 2, 6, 3, 3, 3, 3, 2, 2, 2, 2, 4, 4, 4, 4,  // 8
    2, 6, 2, 6, 4, 4, 4, 4, 2, 5, 2, 5, 5, 5, 5, 5,  // 9
    2, 6, 2, 6, 3, 3, 3, 4, 2, 2, 2, 2, 4, 4, 4, 4,  // a
    2, 5, 2, 5, 4, 4, 4, 4, 2, 4, 2, 4, 4, 4, 4, 4,  // b
    2, 6, 2, 8, 3, 3, 5, 5, 2, 2, 2, 2, 4, 4, 6, 6,  // c
    2, 5, 2, 8, 4, 4, 6, 6, 2, 4, 2, 7, 4, 4, 7, 7,  // d
    2, 6, 2, 8, 3, 3, 5, 5, 2, 2, 2, 2, 4, 4, 6, 6,  // e
    2, 5, 2, 8, 4, 4, 6, 6, 2, 4, 2, 7, 4, 4, 7, 7,  // f
};

constexpr bool IsTia(uint16_t address) { return (address & 0x1080) == 0; }
constexpr bool IsRiot(uint16_t address) { return (address & 0x1280) == 0x280; }

}  // namespace

// Return whether the chips are at their standard addresses, which some cartridges change.
bool Cpu::FindDevices() {
  if (devices_ != Devices::kUnknown) return devices_ == Devices::kPlain;
  devices_ = Devices::kOthers;
  const Page* pages = mySystem->myPageAccessTable;
  tia_ = static_cast<Tia*>(&mySystem->tia());
  riot_ = static_cast<ale::stella::M6532*>(pages[0x280 >> kPageBits].device);
  ram_ = pages[0x80 >> kPageBits].directPeekBase;
  if (ram_ == nullptr) return false;
  for (int address = 0; address < 0x1000; address += kCodePageBytes) {
    const Page& page = pages[address >> kPageBits];
    uint8_t* memory = (address & 0x280) == 0x80 ? ram_ + (address & 0x40) : nullptr;
    const bool chip = IsTia(address) ? page.device == tia_ : page.device == riot_;
    if (!chip || page.directPeekBase != memory || page.directPokeBase != memory) return false;
  }
  devices_ = Devices::kPlain;
  return true;
}

// Return whether the cartridge's visible memory has changed.
bool Cpu::SynchronizeView() {
  const Page* pages = mySystem->myPageAccessTable + kCartridgePages;
  std::array<const uint8_t*, kCartridgePages> memory;
  for (int i = 0; i < kCartridgePages; ++i) memory[i] = pages[i].directPeekBase;
  if (view_ != nullptr && view_->memory == memory) return false;
  const auto known =
      std::find_if(views_.begin(), views_.end(), [&](const auto& view) { return view->memory == memory; });
  if (known != views_.end()) {
    view_ = known->get();
    return true;
  }
  views_.push_back(std::make_unique<View>());
  view_ = views_.back().get();
  view_->memory = memory;
  view_->code.fill(nullptr);
  return true;
}

const DecodedPage* Cpu::DecodeHere(uint16_t address) {
  const int page = (address & kAddressMask) >> kPageBits, next = (page + 1) % kPages;
  const Page* pages = mySystem->myPageAccessTable;
  const uint8_t* memory = pages[page].directPeekBase;
  // Writable memory may change.
  const auto is_written = [&](const uint8_t* bytes) {
    return std::any_of(pages, pages + kPages, [&](const Page& each) { return each.directPokeBase == bytes; });
  };
  const bool decodes = page >= kCartridgePages && memory != nullptr && !is_written(memory);
  const uint8_t* following = next < kCartridgePages ? nullptr : pages[next].directPeekBase;
  if (following != nullptr && is_written(following)) following = nullptr;
  const DecodedPage* code = decodes ? Decode(*handlers_, memory, following, page & 3) : UndecodedPage(*handlers_);
  view_->code[page] = code;
  return code;
}

__attribute__((noinline)) uint8_t Cpu::ReadDevice(uint16_t address, uint32_t cycles, uint8_t bus) {
  mySystem->myCycles = cycles;
  if (IsTia(address)) return tia_->Read(address, bus);
  if (IsRiot(address)) return riot_->M6532::peek(address);
  mySystem->myDataBusState = bus;
  const uint8_t value = mySystem->myPageAccessTable[(address & kAddressMask) >> kPageBits].device->peek(address);
  exchanged_ = SynchronizeView();
  return value;
}

// Write to any device except the television chip. Returns the cycle count afterward.
__attribute__((noinline)) uint32_t Cpu::WriteDevice(uint16_t address, uint8_t value, uint32_t cycles) {
  mySystem->myCycles = cycles;
  if (IsRiot(address)) {
    riot_->M6532::poke(address, value);
    return cycles;
  }
  mySystem->myPageAccessTable[(address & kAddressMask) >> kPageBits].device->poke(address, value);
  exchanged_ = SynchronizeView();
  return mySystem->myCycles;
}

// Return a lower bound of the remaining iterations of a loop that polls the timer; iterations differ only in the
// cycles.
uint32_t Cpu::TimerLoops(const Instruction& load, uint32_t cycles) const {
  const Instruction& branch = *(&load + 3);
  const int64_t since = static_cast<int64_t>(cycles + 4 - 1 - static_cast<uint32_t>(riot_->myCyclesWhenTimerSet));
  const int64_t timer = riot_->myTimer;
  const int64_t value = timer - (since >> riot_->myIntervalShift) - 1;
  if (since < 0 || value < 1) return 0;
  int64_t least = 1;  // smallest timer value for which the loop certainly continues
  if (load.opcode == 0x2c) {
    least = 0;
  } else if (branch.opcode == 0x30) {
    least = 128;
  } else if (branch.opcode == 0x10 && value > 127) {
    return 0;
  }
  const int64_t left = ((timer - least) << riot_->myIntervalShift) - since;  // cycles
  const int each = 4 + 2 + branch.taken_cycles;
  return left <= 0 ? 0 : static_cast<uint32_t>((left + each - 1) / each);
}

bool Cpu::execute(uint32_t instructions) {
  if (!FindDevices()) return M6502Low::execute(instructions);
  myExecutionStatus &= FatalErrorBit;
  if (myExecutionStatus != 0) return false;

  // The addresses of the handlers below, by their labels.
#define NEUROEVO_ROW(macro, h)                                                                                \
  macro(h##0) macro(h##1) macro(h##2) macro(h##3) macro(h##4) macro(h##5) macro(h##6) macro(h##7) macro(h##8) \
      macro(h##9) macro(h##a) macro(h##b) macro(h##c) macro(h##d) macro(h##e) macro(h##f)
#define NEUROEVO_PLACE(n) place(&&op_##n),
#define NEUROEVO_DEVICE_PLACES(h)                                                                                      \
  0, 0, 0, 0, place(&&dev_##h##4), place(&&dev_##h##5), place(&&dev_##h##6), place(&&dev_##h##7), 0, 0, 0, 0, 0, 0, 0, \
      0,
#define NEUROEVO_NO_DEVICE_PLACES 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
#define place(label) static_cast<int32_t>(static_cast<const char*>(label) - static_cast<const char*>(&&op_00))
  // clang-format off
  static const HandlerTable handlers = {
      NEUROEVO_ROW(NEUROEVO_PLACE, 0) NEUROEVO_ROW(NEUROEVO_PLACE, 1) NEUROEVO_ROW(NEUROEVO_PLACE, 2)
      NEUROEVO_ROW(NEUROEVO_PLACE, 3) NEUROEVO_ROW(NEUROEVO_PLACE, 4) NEUROEVO_ROW(NEUROEVO_PLACE, 5)
      NEUROEVO_ROW(NEUROEVO_PLACE, 6) NEUROEVO_ROW(NEUROEVO_PLACE, 7) NEUROEVO_ROW(NEUROEVO_PLACE, 8)
      NEUROEVO_ROW(NEUROEVO_PLACE, 9) NEUROEVO_ROW(NEUROEVO_PLACE, a) NEUROEVO_ROW(NEUROEVO_PLACE, b)
      NEUROEVO_ROW(NEUROEVO_PLACE, c) NEUROEVO_ROW(NEUROEVO_PLACE, d) NEUROEVO_ROW(NEUROEVO_PLACE, e)
      NEUROEVO_ROW(NEUROEVO_PLACE, f)
      NEUROEVO_DEVICE_PLACES(0) NEUROEVO_NO_DEVICE_PLACES NEUROEVO_DEVICE_PLACES(2) NEUROEVO_NO_DEVICE_PLACES
      NEUROEVO_DEVICE_PLACES(4) NEUROEVO_NO_DEVICE_PLACES NEUROEVO_DEVICE_PLACES(6) NEUROEVO_NO_DEVICE_PLACES
      NEUROEVO_DEVICE_PLACES(8) NEUROEVO_NO_DEVICE_PLACES NEUROEVO_DEVICE_PLACES(a) NEUROEVO_NO_DEVICE_PLACES
      NEUROEVO_DEVICE_PLACES(c) NEUROEVO_NO_DEVICE_PLACES NEUROEVO_DEVICE_PLACES(e) NEUROEVO_NO_DEVICE_PLACES
      place(&&far_10), place(&&far_30), place(&&far_50), place(&&far_70),
      place(&&far_90), place(&&far_b0), place(&&far_d0), place(&&far_f0),
      place(&&wait_ac), place(&&wait_ad), place(&&wait_ae), 0, place(&&wait_2c), 0, 0, 0,
      place(&&short_wait), place(&&long_wait), place(&&step), place(&&next_page), place(&&reenter), place(&&stop)};
  // Continuation of an instruction of 1 to 3 bytes that switched banks or stopped the processor.
  static const Instruction reentered[kLongest + 1] = {{}, {}, {}, {place(&&reenter), 0, 0, 0}};
  static const Instruction stopped[kLongest + 1] = {{}, {}, {}, {place(&&stop), 0, 0, 0}};
  // clang-format on
  handlers_ = &handlers;
  SynchronizeView();

  // All state is in local variables, which a compiler can keep in registers.
  const char* const first = static_cast<const char*>(&&op_00);
  const Page* const pages = mySystem->myPageAccessTable;
  Tia* const tia = tia_;
  uint8_t* const zero_page = ram_ - 0x80;  // the first half of the zero page is not memory
  const Instruction* op;
  uintptr_t origin;  // hypothetical location of the decoded instruction for address 0
  int64_t left = instructions;
  uint32_t cycles;
  Registers r;
  uint16_t pc;
  uint8_t bus = mySystem->myDataBusState;  // the last byte read or written, kept only where it is used
  uint8_t value, low, last_opcode = 0;
  bool stops = false;

#include "envs/atari/console/handlers.inc"

  LOAD_REGISTERS
  goto enter;

  // clang-format off
  READS(0, 1, r.Or)
  READS(2, 3, r.And)
  READS(4, 5, r.Xor)
  READS(6, 7, r.Add)
  READS(a, b, r.LoadA)
  READS(c, d, r.CompareA)
  READS(e, f, r.Subtract)
  READS_IMMEDIATE(eb, r.Subtract)

  WRITES_ZERO(85, r.a)
  WRITES_ZERO(84, r.y)
  WRITES_ZERO(86, r.x)
  WRITES_ZERO(87, r.a & r.x)
  WRITES_ZERO_INDEXED(95, ZERO_X, r.a)
  WRITES_ZERO_INDEXED(94, ZERO_X, r.y)
  WRITES_ZERO_INDEXED(96, ZERO_Y, r.x)
  WRITES_ZERO_INDEXED(97, ZERO_Y, r.a & r.x)
  WRITES(8d, op->operand, r.a, 3)
  WRITES(8c, op->operand, r.y, 3)
  WRITES(8e, op->operand, r.x, 3)
  WRITES(8f, op->operand, r.a & r.x, 3)
  WRITES(99, INDEXED(r.y), r.a, 3)
  WRITES(9d, INDEXED(r.x), r.a, 3)
  HANDLER(op_81) cycles += kCycles[0x81]; POINTER(ZERO_X, address) WRITE(address, r.a, 2) END(2)
  HANDLER(op_83) cycles += kCycles[0x83]; POINTER(ZERO_X, address) WRITE(address, r.a & r.x, 2) END(2)
  HANDLER(op_91) cycles += kCycles[0x91]; POINTER(static_cast<uint8_t>(op->operand), base)
    WRITE(static_cast<uint16_t>(base + r.y), r.a, 2) END(2)
  // A write to WSYNC, at which the processor waits for the next line; the value is ignored.
  HANDLER(short_wait)
    if (tia->Overruns(cycles + 3)) goto *(first + handlers[kDeviceHandlers + op->opcode]);
    cycles = tia->WaitForLine(cycles + 3); END(2)
  HANDLER(long_wait)
    if (tia->Overruns(cycles + 4)) goto *(first + handlers[op->opcode]);
    cycles = tia->WaitForLine(cycles + 4); END(3)

  READS_IMMEDIATE(a2, r.LoadX)
  READS_ZERO(a6, r.LoadX)
  READS_ABSOLUTE(ae, r.LoadX)
  READS_ZERO_INDEXED(b6, ZERO_Y, r.LoadX)
  READS_INDEXED(be, r.y, r.LoadX)
  READS_IMMEDIATE(a0, r.LoadY)
  READS_ZERO(a4, r.LoadY)
  READS_ABSOLUTE(ac, r.LoadY)
  READS_ZERO_INDEXED(b4, ZERO_X, r.LoadY)
  READS_INDEXED(bc, r.x, r.LoadY)
  READS_IMMEDIATE(e0, r.CompareX)
  READS_ZERO(e4, r.CompareX)
  READS_ABSOLUTE(ec, r.CompareX)
  READS_IMMEDIATE(c0, r.CompareY)
  READS_ZERO(c4, r.CompareY)
  READS_ABSOLUTE(cc, r.CompareY)
  READS_ZERO(24, r.TestBits)
  READS_ABSOLUTE(2c, r.TestBits)
  WAITS(ad)
  WAITS(ae)
  WAITS(ac)
  WAITS(2c)

  CHANGES(0, 1, r.Asl)
  CHANGES(2, 3, r.Rol)
  CHANGES(4, 5, r.Lsr)
  CHANGES(6, 7, r.Ror)
  CHANGES(c, d, r.Dec)
  CHANGES(e, f, r.Inc)
  SIMPLE(0a, r.LoadA(r.Asl(r.a)))
  SIMPLE(2a, r.LoadA(r.Rol(r.a)))
  SIMPLE(4a, r.LoadA(r.Lsr(r.a)))
  SIMPLE(6a, r.LoadA(r.Ror(r.a)))
  SIMPLE(ca, r.LoadX(r.Dec(r.x)))
  SIMPLE(88, r.LoadY(r.Dec(r.y)))
  SIMPLE(e8, r.LoadX(r.Inc(r.x)))
  SIMPLE(c8, r.LoadY(r.Inc(r.y)))
  SIMPLE(aa, r.LoadX(r.a))
  SIMPLE(a8, r.LoadY(r.a))
  SIMPLE(ba, r.LoadX(r.stack))
  SIMPLE(8a, r.LoadA(r.x))
  SIMPLE(98, r.LoadA(r.y))
  SIMPLE(9a, r.stack = r.x)
  SIMPLE(18, r.carry = 0)
  SIMPLE(38, r.carry = 1)
  SIMPLE(58, r.interrupts_off = false)
  SIMPLE(78, r.interrupts_off = true)
  SIMPLE(b8, r.overflow = false)
  SIMPLE(d8, r.decimal = false)
  SIMPLE(f8, r.decimal = true)
  SIMPLE(ea, ) SIMPLE(1a, ) SIMPLE(3a, ) SIMPLE(5a, ) SIMPLE(7a, ) SIMPLE(da, ) SIMPLE(fa, )

  BRANCH(10, !r.negative())
  BRANCH(30, r.negative())
  BRANCH(50, !r.overflow)
  BRANCH(70, r.overflow)
  BRANCH(90, !r.carry)
  BRANCH(b0, r.carry)
  BRANCH(d0, !r.zero())
  BRANCH(f0, r.zero())

  HANDLER(op_4c) cycles += kCycles[0x4c]; pc = op->operand; bus = static_cast<uint8_t>(pc >> 8); --left; goto enter; }
  HANDLER(op_6c) cycles += kCycles[0x6c];  // the high byte of r.a pointer at the end of r.a page is at the page's start
    const uint16_t at_first = op->operand, at_second = static_cast<uint16_t>((at_first & 0xff00) | ((at_first + 1) & 0xff));
    READ(at_first, static_cast<uint8_t>(at_first >> 8), 3) low = value;
    READ(at_second, low, 3)
    pc = static_cast<uint16_t>(low | value << 8); bus = value; --left; goto enter; }
  HANDLER(op_20) cycles += kCycles[0x20];
    const uint16_t after = static_cast<uint16_t>(ADDRESS_OF(op) + 2), to_call = op->operand;
    last_opcode = 0x20;
    PUSH(static_cast<uint8_t>(after >> 8), true) PUSH(static_cast<uint8_t>(after), false)
    pc = to_call; bus = static_cast<uint8_t>(to_call >> 8); --left;
    if (stops) goto stop;
    goto enter; }
  HANDLER(op_60) cycles += kCycles[0x60];
    bus = 0x60; PULL ++r.stack; PULL low = value; ++r.stack; PULL
    pc = static_cast<uint16_t>(low | value << 8);
    const uint8_t* page = pages[(pc & kAddressMask) >> kPageBits].directPeekBase;
    bus = page != nullptr ? page[pc & kPageMask] : ReadDevice(pc, cycles, value);
    ++pc; --left;
    goto enter; }
  HANDLER(op_48) cycles += kCycles[0x48]; last_opcode = 0x48; PUSH(r.a, true) if (stops) goto stop_after_push; END(1)
  HANDLER(op_08) cycles += kCycles[0x08]; last_opcode = 0x08; PUSH(r.Status(), true) if (stops) goto stop_after_push; END(1)
  HANDLER(op_68) cycles += kCycles[0x68]; bus = 0x68; PULL ++r.stack; PULL r.LoadA(value); END(1)
  HANDLER(op_28) cycles += kCycles[0x28]; bus = 0x28; PULL ++r.stack; PULL
    r.SetStatus(value); END(1)

  READS_IMMEDIATE(80, r.Nothing) READS_IMMEDIATE(82, r.Nothing) READS_IMMEDIATE(89, r.Nothing)
  READS_IMMEDIATE(c2, r.Nothing) READS_IMMEDIATE(e2, r.Nothing)
  READS_ZERO(04, r.Nothing) READS_ZERO(44, r.Nothing) READS_ZERO(64, r.Nothing)
  READS_ZERO_INDEXED(14, ZERO_X, r.Nothing) READS_ZERO_INDEXED(34, ZERO_X, r.Nothing)
  READS_ZERO_INDEXED(54, ZERO_X, r.Nothing) READS_ZERO_INDEXED(74, ZERO_X, r.Nothing)
  READS_ZERO_INDEXED(d4, ZERO_X, r.Nothing) READS_ZERO_INDEXED(f4, ZERO_X, r.Nothing)
  READS_ABSOLUTE(0c, r.Nothing)
  READS_INDEXED(1c, r.x, r.Nothing) READS_INDEXED(3c, r.x, r.Nothing) READS_INDEXED(5c, r.x, r.Nothing)
  READS_INDEXED(7c, r.x, r.Nothing) READS_INDEXED(dc, r.x, r.Nothing) READS_INDEXED(fc, r.x, r.Nothing)

  CHANGES_AND(0, 1, r.Asl, r.Or)
  CHANGES_AND(2, 3, r.Rol, r.And)
  CHANGES_AND(4, 5, r.Lsr, r.Xor)
  CHANGES_AND(6, 7, r.Ror, r.Add)
  CHANGES_AND(c, d, r.Dec, r.CompareA)
  CHANGES_AND(e, f, r.Inc, r.Subtract)

  READS_INDIRECT_X(a3, r.LoadBoth)
  READS_ZERO(a7, r.LoadBoth)
  READS_ABSOLUTE(af, r.LoadBoth)
  READS_INDIRECT_Y(b3, r.LoadBoth)
  READS_ZERO_INDEXED(b7, ZERO_Y, r.LoadBoth)
  READS_INDEXED(bf, r.y, r.LoadBoth)
  READS_INDEXED(bb, r.y, r.LoadThree)
  READS_IMMEDIATE(0b, r.AndCarry)
  READS_IMMEDIATE(2b, r.AndCarry)
  READS_IMMEDIATE(4b, r.AndShift)
  READS_IMMEDIATE(6b, r.AndRotate)
  READS_IMMEDIATE(cb, r.SubtractFromBoth)
  HANDLER(op_8b) cycles += kCycles[0x8b]; r.LoadA(static_cast<uint8_t>((r.a | 0xee) & r.x & op->operand)); END(2)
  HANDLER(op_ab) cycles += kCycles[0xab]; r.LoadBoth(static_cast<uint8_t>((r.a | 0xee) & op->operand)); END(2)
// clang-format on

// The remaining instructions: those that halt the processor, interrupts, and some undocumented ones.
op_00 : op_40 : op_93 : op_9b : op_9c : op_9e : op_9f : op_02 : op_12 : op_22 : op_32 : op_42 : op_52 : op_62 : op_72
    : op_92 : op_b2 : op_d2 : op_f2 : step : pc = ADDRESS_OF(op);
SAVE_REGISTERS
mySystem->myDataBusState = bus;  // used if the instruction itself is not in memory
M6502Low::execute(1);
if (myExecutionStatus != 0) return !(myExecutionStatus & FatalErrorBit) || (myExecutionStatus & StopExecutionBit);
LOAD_REGISTERS
bus = mySystem->myDataBusState;
--left;
reenter : SynchronizeView();
enter : if (left < kReserve) goto finish_here;
{
  const DecodedPage* code = view_->code[(pc & kAddressMask) >> kPageBits];
  if (__builtin_expect(code == nullptr, false)) code = DecodeHere(pc);
  origin = reinterpret_cast<uintptr_t>(code->data()) - (pc & ~kPageMask) * sizeof(Instruction);
  op = code->data() + (pc & kPageMask);
}
DISPATCH;
next_page : pc = ADDRESS_OF(op);
goto enter;

stop_after_push : pc = static_cast<uint16_t>(ADDRESS_OF(op) + 1);
stop : SAVE_REGISTERS IR = last_opcode;
mySystem->myDataBusState = bus;
myLastAccessWasRead = last_opcode == 0x20;  // JSR, whose last access is the read of its second operand byte
myExecutionStatus |= StopExecutionBit;
return true;

// The last few instructions before the limit, which are counted.
finish : pc = ADDRESS_OF(op);
finish_here : SAVE_REGISTERS mySystem->myDataBusState = bus;
return M6502Low::execute(static_cast<uint32_t>(left));
}

}  // namespace neuroevo
