// Whole calls of a population, timed: forward, and making weights (Init, Perturb) against copying them.
#ifndef NEUROEVO_BENCH_CALL_TIMES_H_
#define NEUROEVO_BENCH_CALL_TIMES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "population/network.h"

namespace neuroevo {

// Microseconds a slot, by name.
using Times = std::vector<std::pair<std::string, double>>;

// On one thread. images: observations, uint8 [kImages, 84, 84, 4].
Times TimeForward(const Network& network, const std::vector<uint8_t>& images, int64_t rows, int repeats);

// Milliseconds to copy a row into another, to perturb it, and to initialise it, in turns, on that many threads.
struct MakeTimes {
  double copy, perturb, init;
};

MakeTimes TimeMaking(const Network& network, int threads, int64_t rows, int repeats);

}  // namespace neuroevo

#endif  // NEUROEVO_BENCH_CALL_TIMES_H_
