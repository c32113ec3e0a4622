// How much memory is left for this process, and whether something fits.
#ifndef NEUROEVO_CORE_MEMORY_H_
#define NEUROEVO_CORE_MEMORY_H_

#include <cstdint>
#include <string>

namespace neuroevo {

// Bytes that this process may still use before the kernel ends one: what the machine has available, swap included, or
// what the memory limits of its control groups (v1 and v2) and of those above them leave, whichever is least. Caches of
// files that can be dropped count as free. Where nothing is known it is the largest number. root: in front of /proc and
// /sys.
int64_t FreeMemory(const std::string& root = "");

// Throws where this many bytes are not free. what: in the plural, what is to take them. For memory that is only mapped
// at first, or taken piece by piece: the kernel would end the process in the middle of that without a word.
void CheckMemory(const std::string& what, int64_t bytes);

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_MEMORY_H_
