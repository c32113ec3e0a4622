#include "envs/atari/console/decoded_page.h"

#include <cstring>
#include <map>
#include <memory>

#include "core/fork.h"

namespace neuroevo {
namespace {

// Length of each instruction in bytes; 0 for instructions that halt the processor, which ALE executes.
constexpr uint8_t kLengths[256] = {
    1, 2, 0, 2, 2, 2, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3,  // 0
    2, 2, 0, 2, 2, 2, 2, 2, 1, 3, 1, 3, 3, 3, 3, 3,  // 1
    3, 2, 0, 2, 2, 2, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3,  // 2
    2, 2, 0, 2, 2, 2, 2, 2, 1, 3, 1, 3, 3, 3, 3, 3,  // 3
    1, 2, 0, 2, 2, 2, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3,  // 4
    2, 2, 0, 2, 2, 2, 2, 2, 1, 3, 1, 3, 3, 3, 3, 3,  // 5
    1, 2, 0, 2, 2, 2, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3,  // 6
    2, 2, 0, 2, 2, 2, 2, 2, 1, 3, 1, 3, 3, 3, 3, 3,  // 7
    2, 2, 2, 2, 2, 2, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3,  // 8
    2, 2, 0, 2, 2, 2, 2, 2, 1, 3, 1, 3, 3, 3, 3, 3,  // 9
    2, 2, 2, 2, 2, 2, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3,  // a
    2, 2, 0, 2, 2, 2, 2, 2, 1, 3, 1, 3, 3, 3, 3, 3,  // b
    2, 2, 2, 2, 2, 2, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3,  // c
    2, 2, 0, 2, 2, 2, 2, 2, 1, 3, 1, 3, 3, 3, 3, 3,  // d
    2, 2, 2, 2, 2, 2, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3,  // e
    2, 2, 0, 2, 2, 2, 2, 2, 1, 3, 1, 3, 3, 3, 3, 3,  // f
};

constexpr bool IsBranch(uint8_t opcode) { return (opcode & 0x1f) == 0x10; }
// Whether an instruction has zero-page addressing without an index.
constexpr bool IsZeroPage(uint8_t opcode) { return (opcode & 0x1c) == 0x04; }

// Whether an address reads the timer's value, or with `flag` its expiry flag.
bool IsTimer(uint16_t address, bool flag) { return (address & 0x1285) == (flag ? 0x285 : 0x284); }

// Whether the code is a loop that polls the timer: a load or test of the timer and a branch back to it.
bool IsTimerWait(const uint8_t* code, int left) {
  if (left < 5 || code[4] != 0xfb) return false;  // branch offset -5
  const uint16_t address = static_cast<uint16_t>(code[1] | code[2] << 8);
  if (code[0] == 0x2c) return code[3] == 0x10 && IsTimer(address, /*flag=*/true);  // BIT, BPL
  const bool loads = code[0] == 0xad || code[0] == 0xae || code[0] == 0xac;
  return loads && (code[3] == 0xd0 || code[3] == 0x10 || code[3] == 0x30) && IsTimer(address, /*flag=*/false);
}

Instruction At(const HandlerTable& handlers, const uint8_t* code, int place, int length, int quarter) {
  const int opcode = code[0], left = kCodePageBytes - place;
  Instruction made = {handlers[opcode], 0, static_cast<uint8_t>(opcode), 0};
  if (length == 2) made.operand = code[1];
  if (length == 3) made.operand = static_cast<uint16_t>(code[1] | code[2] << 8);
  if (IsBranch(static_cast<uint8_t>(opcode))) {
    const int distance = 2 + static_cast<int8_t>(code[1]), from = kCodePageBytes * quarter + place;
    made.operand = static_cast<uint16_t>(distance);
    made.taken_cycles = (from + 2) >> 8 == (from + distance) >> 8 ? 1 : 2;
    if (place + distance < 0 || place + distance >= kCodePageBytes)
      made.handler = handlers[kFarBranches + (opcode >> 5)];
  } else if (IsZeroPage(static_cast<uint8_t>(opcode)) && made.operand < 0x80) {
    const bool stores = opcode == 0x84 || opcode == 0x85 || opcode == 0x86;
    made.handler = handlers[stores && made.operand == kWsync ? int{kShortWait} : kDeviceHandlers + opcode];
  } else if ((opcode == 0x8c || opcode == 0x8d || opcode == 0x8e) && made.operand == kWsync) {
    made.handler = handlers[kLongWait];
  } else if (IsTimerWait(code, left)) {
    made.handler = handlers[kTimerWaits + (opcode == 0x2c ? 4 : opcode & 3)];
  }
  return made;
}

}  // namespace

const DecodedPage* Decode(const HandlerTable& handlers, const uint8_t* page, const uint8_t* next, int quarter) {
  // Inputs on which the result depends.
  std::array<uint8_t, kCodePageBytes + 4> key{};
  std::memcpy(key.data(), page, kCodePageBytes);
  if (next != nullptr) std::memcpy(&key[kCodePageBytes], next, kLongest - 1);
  key[kCodePageBytes + 2] = next != nullptr;
  key[kCodePageBytes + 3] = static_cast<uint8_t>(quarter);

  static ProcessMutex mutex;
  static auto& pages = *new std::map<std::array<uint8_t, kCodePageBytes + 4>, std::unique_ptr<DecodedPage>>();
  const ProcessLock lock(mutex);
  std::unique_ptr<DecodedPage>& decoded = pages[key];
  if (decoded != nullptr) return decoded.get();
  decoded = std::make_unique<DecodedPage>();
  for (int place = 0; place < kCodePageBytes; ++place) {
    const int length = kLengths[key[place]];
    const bool whole = length != 0 && (place + length < kCodePageBytes || next != nullptr);
    (*decoded)[place] = whole ? At(handlers, &key[place], place, length, quarter)
                              : Instruction{handlers[kStepHandler], 0, key[place], 0};
  }
  for (int i = 0; i < kLongest; ++i) (*decoded)[kCodePageBytes + i] = {handlers[kNextPage], 0, 0, 0};
  return decoded.get();
}

const DecodedPage* UndecodedPage(const HandlerTable& handlers) {
  static const DecodedPage page = [&] {
    DecodedPage made;
    made.fill({handlers[kStepHandler], 0, 0, 0});
    return made;
  }();
  return &page;
}

}  // namespace neuroevo
