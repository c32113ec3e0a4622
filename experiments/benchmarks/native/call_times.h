// Whole calls of a population, timed: forward, making weights (Init, Perturb) against copying them, and preparing rows
// with vbn against forward.
#ifndef NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_CALL_TIMES_H_
#define NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_CALL_TIMES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "networks/network.h"

namespace neuroevo {

// Microseconds a slot, by name.
using Times = std::vector<std::pair<std::string, double>>;

// In float32 and, where there is no vbn, in int8, in turns, on one thread. images: observations, uint8 [kImages, 84,
// 84, 4].
Times TimeForward(const Network& network, const std::vector<uint8_t>& images, int64_t rows, int repeats);

// Milliseconds to copy a row into another, to perturb it, and to initialize it, in turns, on that many threads.
struct MakeTimes {
  double copy, perturb, init;
};

MakeTimes TimeMaking(const Network& network, int threads, int64_t rows, int repeats);

// Milliseconds to prepare a row with 128 observations, and of as many forward calls of one slot with that row, in
// turns.
struct PrepareTimes {
  double prepare, forwards;
};

PrepareTimes TimePreparing(const Network& network, const std::vector<uint8_t>& images, int threads, int repeats);

}  // namespace neuroevo

#endif  // NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_CALL_TIMES_H_
