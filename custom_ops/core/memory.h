// Free memory of this process, and checks against it.
#ifndef NEUROEVO_CORE_MEMORY_H_
#define NEUROEVO_CORE_MEMORY_H_

#include <cstdint>
#include <string>

namespace neuroevo {

// Return the bytes that this process can still allocate before the out-of-memory killer acts: the minimum of the
// machine's available memory, swap included, and the remainder of the limits of its control groups (v1 and v2) and
// their ancestors. Reclaimable file caches count as free. If no limit is known, return the largest int64. root: path
// prefix of /proc and /sys.
int64_t FreeMemory(const std::string& root = "");

// Throw if fewer than `bytes` bytes are free. what: what needs the memory, in the plural, for the message. Call this
// before mapping memory lazily or allocating piece by piece: the out-of-memory killer gives no error message.
void CheckMemory(const std::string& what, int64_t bytes);

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_MEMORY_H_
