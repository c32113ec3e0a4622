// Zeros on a GPU have the same signs as on the CPU.
#include "native/population/tiny_networks.h"

#include "native/on_gpu/rows.h"

using namespace neuroevo;

TEST(SignsOfZerosAreTheCpus) {
  NotForThreadSanitizer();
  NeedGpu();
  const std::vector<tiny_networks::Way> ways = {{"cpu", false, false}, {NEUROEVO_CUDA_BACKEND, false, false}};
  for (uint64_t seed = 0; seed < (FullSize() ? 300 : 20); ++seed) tiny_networks::CheckNetwork(seed, ways);
}
