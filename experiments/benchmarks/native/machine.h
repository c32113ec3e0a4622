// Limits of this machine, measured in slices of about a millisecond, to be interleaved with the measurements that are
// compared with them: other work on the machine then slows both alike.
#ifndef NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_MACHINE_H_
#define NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_MACHINE_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace neuroevo {

// Zeroed memory in huge pages where there are any.
class Buffer {
 public:
  explicit Buffer(int64_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  int64_t bytes() const { return bytes_; }
  char* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }

 private:
  int64_t bytes_;
  char* data_;
};

// Bytes of the data caches: per core, per core, and shared. Typical sizes if the system does not report them.
struct Caches {
  int64_t l1, l2, l3;
};
Caches CacheSizes();

// The rates below are of the instruction set that this program is built for.

// Billions of float operations a second in independent fused multiply-adds (two each).
double FmaRate();

// Billions of operations a second (two a multiply-add) of uint8 times int8 into int32: by VNNI instructions, or as
// numbers of 16 bits that are multiplied and added in pairs.
double Int8Rate();

// Gigabytes a second read in order from the buffer's bytes [begin, begin + bytes), `times` times over, with software
// prefetches that many bytes ahead, or without any for 0. What a machine can do is the best of several distances.
constexpr int64_t kAheads[] = {0, 1 << 13, 1 << 16};
double ReadRate(const Buffer& buffer, int64_t begin, int64_t bytes, int times, int64_t ahead);

// Gigabytes a second copied, each counted once, by memcpy.
double CopyRate(const Buffer& from, const Buffer& to, int64_t begin, int64_t bytes);

double Seconds();  // of a clock that only goes forward
double Microseconds(const std::function<void()>& run);
double Median(std::vector<double> values);

}  // namespace neuroevo

#endif  // NEUROEVO_EXPERIMENTS_BENCHMARKS_NATIVE_MACHINE_H_
