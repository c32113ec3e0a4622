// Skipping zeros changes no bit of a sum, including its sign: the CPU backend with a separate call per slot and with
// slots of several rows in a call, with and without the memory of slots, compared with the reference.
//
// NEUROEVO_TEST_NETWORKS=100000 NEUROEVO_TEST_FIRST_NETWORK=1000 build/native/tests/tiny_networks_test runs more
// networks and starts with another one.
#include "native/population/tiny_networks.h"

#include <cstdlib>

using namespace neuroevo;

namespace {

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoll(value);
}

}  // namespace

TEST(SignsOfZerosDependOnNothingElseInTheCall) {
  const int64_t first = FromEnvironment("NEUROEVO_TEST_FIRST_NETWORK", 0);
  const int64_t last = first + FromEnvironment("NEUROEVO_TEST_NETWORKS", 100);
  const std::vector<tiny_networks::Way> ways = {
      {"reference", false, false}, {"cpu", false, true}, {"cpu", false, false}, {"cpu", true, false}};
  for (int64_t seed = first; seed < last; ++seed) tiny_networks::CheckNetwork(static_cast<uint64_t>(seed), ways);
}
