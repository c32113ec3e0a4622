// Philox4x32-10: a counter-based random number generator, for host and device.
// Salmon, Moraes, Dror and Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
#ifndef NEUROEVO_CORE_PHILOX_H_
#define NEUROEVO_CORE_PHILOX_H_

#include <cstdint>

#include "core/portable_math.h"

namespace neuroevo {

struct Philox {
  static constexpr int kRounds = 10;
  static constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  static constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;  // added to the key after each round

  uint32_t word[4];

  // Transform the counter in word[] into four random words.
  NEUROEVO_HD void Encrypt(uint32_t key0, uint32_t key1) {
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t product0 = static_cast<uint64_t>(kMultiplier0) * word[0];
      const uint64_t product1 = static_cast<uint64_t>(kMultiplier1) * word[2];
      word[0] = static_cast<uint32_t>(product1 >> 32) ^ word[1] ^ key0;
      word[1] = static_cast<uint32_t>(product1);
      word[2] = static_cast<uint32_t>(product0 >> 32) ^ word[3] ^ key1;
      word[3] = static_cast<uint32_t>(product0);
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
  }
};

// Return the four random words of a counter under a 64-bit key; the upper half of the 128-bit counter is zero.
NEUROEVO_HD inline Philox PhiloxWords(uint64_t key, uint64_t counter) {
  Philox philox{{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}};
  philox.Encrypt(static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  return philox;
}

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_PHILOX_H_
