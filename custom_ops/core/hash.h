// Hash of 128 bits for tables whose entries are compared by their hashes alone.
#ifndef NEUROEVO_CORE_HASH_H_
#define NEUROEVO_CORE_HASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace neuroevo {

// Different data have the same hash with negligible probability: each word enters both halves by a bijection.
class Hash128 {
 public:
  using Value = std::array<uint64_t, 2>;

  void Add(const void* data, size_t bytes) {
    const auto* from = static_cast<const uint8_t*>(data);
    Mix(bytes);
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), from += sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, from, sizeof(word));
      Mix(word);
    }
    uint64_t rest = 0;
    if (bytes > 0) std::memcpy(&rest, from, bytes);
    Mix(rest);
  }
  void Add(int64_t value) { Mix(static_cast<uint64_t>(value)); }

  Value value() const { return {low_, high_}; }

 private:
  void Mix(uint64_t word) {
    low_ = (low_ ^ word) * 0x9e3779b97f4a7c15;
    low_ ^= low_ >> 32;
    high_ = (high_ + word) * 0xd6e8feb86659fd93;
    high_ ^= high_ >> 29;
  }

  uint64_t low_ = 0x243f6a8885a308d3, high_ = 0x13198a2e03707344;
};

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_HASH_H_
