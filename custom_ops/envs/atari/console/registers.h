// The processor's registers and the operations of instructions on them. The flags N and Z are computed lazily from the
// last result.
#ifndef NEUROEVO_ENVS_ATARI_CONSOLE_REGISTERS_H_
#define NEUROEVO_ENVS_ATARI_CONSOLE_REGISTERS_H_

#include <cstdint>

namespace neuroevo {

#define NEUROEVO_INLINE __attribute__((always_inline)) inline

constexpr int FromDecimal(uint8_t digits) { return (digits >> 4) * 10 + (digits & 15); }
// Negative numbers result from invalid decimal digits; ALE then reads before the start of its table.
constexpr uint8_t ToDecimal(int number) {
  if (number < 0) return static_cast<uint8_t>(FromDecimal(static_cast<uint8_t>(number)));
  return static_cast<uint8_t>(number % 100 / 10 << 4 | number % 10);
}

struct Registers {
  uint32_t result = 0;  // Z: bits 0 to 7 are 0; N: bit 7 or 8 is 1
  uint8_t a = 0, x = 0, y = 0, stack = 0;
  uint8_t carry = 0, overflow = 0;  // 0 or 1, 0 or not
  bool decimal = false, interrupts_off = false;

  NEUROEVO_INLINE bool negative() const { return (result & 0x180) != 0; }
  NEUROEVO_INLINE bool zero() const { return (result & 0xff) == 0; }
  NEUROEVO_INLINE void SetNegativeAndZero(bool negative, bool zero) {
    result = static_cast<uint32_t>(!zero) | static_cast<uint32_t>(negative) << 8;
  }
  NEUROEVO_INLINE uint8_t Status() const {  // B is always set
    return static_cast<uint8_t>(negative() << 7 | (overflow != 0) << 6 | 0x30 | decimal << 3 | interrupts_off << 2 |
                                zero() << 1 | carry);
  }
  NEUROEVO_INLINE void SetStatus(uint8_t status) {
    SetNegativeAndZero(status & 0x80, status & 2);
    overflow = status & 0x40;
    decimal = status & 8;
    interrupts_off = status & 4;
    carry = status & 1;
  }

  NEUROEVO_INLINE void LoadA(uint8_t value) { result = a = value; }
  NEUROEVO_INLINE void LoadX(uint8_t value) { result = x = value; }
  NEUROEVO_INLINE void LoadY(uint8_t value) { result = y = value; }
  NEUROEVO_INLINE void LoadBoth(uint8_t value) { result = a = x = value; }
  NEUROEVO_INLINE void LoadThree(uint8_t value) { result = a = x = stack = stack & value; }
  NEUROEVO_INLINE void Nothing(uint8_t) {}
  NEUROEVO_INLINE void Flags(uint8_t value) { result = value; }
  NEUROEVO_INLINE void Or(uint8_t value) { result = a = a | value; }
  NEUROEVO_INLINE void And(uint8_t value) { result = a = a & value; }
  NEUROEVO_INLINE void Xor(uint8_t value) { result = a = a ^ value; }
  NEUROEVO_INLINE void Compare(uint8_t left, uint8_t right) {
    carry = left >= right;
    result = static_cast<uint8_t>(left - right);
  }
  NEUROEVO_INLINE void CompareA(uint8_t value) { Compare(a, value); }
  NEUROEVO_INLINE void CompareX(uint8_t value) { Compare(x, value); }
  NEUROEVO_INLINE void CompareY(uint8_t value) { Compare(y, value); }
  NEUROEVO_INLINE void TestBits(uint8_t value) {
    result = static_cast<uint32_t>(a & value) | static_cast<uint32_t>(value & 0x80) << 1;
    overflow = value & 0x40;
  }
  NEUROEVO_INLINE void AddBinary(uint8_t value) {
    const int sum = a + value + carry;
    overflow = ~(a ^ value) & (a ^ sum) & 0x80;
    carry = static_cast<uint8_t>(sum >> 8);
    LoadA(static_cast<uint8_t>(sum));
  }
  NEUROEVO_INLINE void Add(uint8_t value) {
    if (__builtin_expect(decimal, false)) return AddDecimal(value);
    AddBinary(value);
  }
  NEUROEVO_INLINE void Subtract(uint8_t value) {
    if (__builtin_expect(decimal, false)) return SubtractDecimal(value);
    AddBinary(static_cast<uint8_t>(~value));
  }
  NEUROEVO_INLINE void AddDecimal(uint8_t value) {
    const int sum = FromDecimal(a) + FromDecimal(value) + carry;
    carry = sum > 99;
    DecimalResult(value, ToDecimal(sum & 0xff));
  }
  NEUROEVO_INLINE void SubtractDecimal(uint8_t value) {
    const int borrow = !carry;
    const int difference = FromDecimal(a) - FromDecimal(value) - borrow;
    carry = a >= value + borrow;
    DecimalResult(value, ToDecimal(difference < 0 ? difference + 100 : difference));
  }
  NEUROEVO_INLINE void DecimalResult(uint8_t value, uint8_t digits) {
    overflow = (a ^ digits) & (digits ^ value) & 0x80;
    LoadA(digits);
  }
  NEUROEVO_INLINE uint8_t ShiftLeft(uint8_t value, uint8_t in) {
    carry = value >> 7;
    return static_cast<uint8_t>(value << 1 | in);
  }
  NEUROEVO_INLINE uint8_t ShiftRight(uint8_t value, uint8_t in) {
    carry = value & 1;
    return static_cast<uint8_t>(value >> 1 | in << 7);
  }
  NEUROEVO_INLINE uint8_t Asl(uint8_t value) { return ShiftLeft(value, 0); }
  NEUROEVO_INLINE uint8_t Lsr(uint8_t value) { return ShiftRight(value, 0); }
  NEUROEVO_INLINE uint8_t Rol(uint8_t value) { return ShiftLeft(value, carry); }
  NEUROEVO_INLINE uint8_t Ror(uint8_t value) { return ShiftRight(value, carry); }
  NEUROEVO_INLINE uint8_t Inc(uint8_t value) { return static_cast<uint8_t>(value + 1); }
  NEUROEVO_INLINE uint8_t Dec(uint8_t value) { return static_cast<uint8_t>(value - 1); }
  // Undocumented operations.
  NEUROEVO_INLINE void AndCarry(uint8_t value) {
    And(value);
    carry = a >> 7;
  }
  NEUROEVO_INLINE void AndShift(uint8_t value) {
    And(value);
    LoadA(Lsr(a));
  }
  NEUROEVO_INLINE void AndRotate(uint8_t value) {
    const uint8_t masked = a & value;
    LoadA(static_cast<uint8_t>(masked >> 1 | carry << 7));
    if (!decimal) {
      carry = (a & 0x40) != 0;
      overflow = ((a & 0x40) ^ ((a & 0x20) << 1)) != 0;
      return;
    }
    overflow = (masked ^ a) & 0x40;
    if ((masked & 0x0f) + (masked & 0x01) > 0x05) a = static_cast<uint8_t>((a & 0xf0) | ((a + 6) & 0x0f));
    carry = (masked & 0xf0) + (masked & 0x10) > 0x50;
    if (carry) a = static_cast<uint8_t>(a + 0x60);
  }
  NEUROEVO_INLINE void SubtractFromBoth(uint8_t value) {
    const uint8_t masked = a & x;
    Compare(masked, value);
    x = static_cast<uint8_t>(masked - value);
  }
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_ATARI_CONSOLE_REGISTERS_H_
