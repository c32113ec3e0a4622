// Calls of a population on a GPU, timed.
#ifndef NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_GPU_CALLS_H_
#define NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_GPU_CALLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device.h"
#include "population/cuda/device_forward.h"
#include "population/population.h"

namespace neuroevo {

// Rows that a call plays: consecutive rows, scattered rows, or one row for all slots.
enum class Play { kOwnRows, kScattered, kOneRow };

struct CallTimes {
  double queued, alone;  // seconds of a call
};

// All times are medians of what was measured in about `seconds` of wall time.

class DeviceCalls {
 public:
  // A population of one network with all its rows filled.
  DeviceCalls(const std::string& network, DType dtype, int64_t rows);

  int64_t rows() const { return population_->rows(); }
  int64_t weight_bytes() const;  // of one network

  CallTimes Time(int64_t k, Play play, double seconds);
  double TimeFromHost(int64_t k, double seconds);

 private:
  struct OwnStream {
    device::Stream stream = device::MakeStream();
    ~OwnStream() { device::FreeStream(stream); }
  };

  // The rows of the next call.
  std::vector<int64_t> NextRows(int64_t k, Play play);
  // Makes device memory hold k observations.
  void Prepare(int64_t k);

  DType dtype_;
  std::unique_ptr<Population> population_;
  cuda::DeviceForward* forward_;
  OwnStream own_;
  device::Memory in_, out_, workspace_, pinned_;
  int64_t prepared_ = 0, call_ = 0;
};

// Bytes a second, read and written, of a copy within the GPU; and to it and from it, over the bus.
double CopyBandwidth(int64_t bytes, double seconds);
std::pair<double, double> BusBandwidth(int64_t bytes, double seconds);

// Seconds a row: Init and Perturb of many rows at once, Perturb of one, and chains of 10 in many rows at once.
struct MakeTimes {
  double init, perturb, perturb_one, chain;
};
MakeTimes TimeMaking(const std::string& network, DType dtype, int64_t rows, double seconds);

}  // namespace neuroevo

#endif  // NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_GPU_CALLS_H_
