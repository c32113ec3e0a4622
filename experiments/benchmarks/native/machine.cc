#include "machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "core/simd.h"

namespace neuroevo {

namespace {

volatile float sink;  // what is written here is not optimized away

RawWords Xor(const char* data, int64_t bytes, int64_t ahead) {
  constexpr int kAtOnce = 8, kStep = kAtOnce * sizeof(RawWords);
  RawWords sum[kAtOnce] = {};
  for (int64_t i = 0; i + kStep <= bytes; i += kStep) {
#pragma GCC unroll 8
    for (int v = 0; v < kAtOnce; ++v) {
      RawWords value;
      const char* place = data + i + v * sizeof(value);
      if (ahead > 0) __builtin_prefetch(place + ahead);  // a line, or a part of one again
      memcpy(&value, place, sizeof(value));
      sum[v] ^= value;
    }
  }
  for (int v = 1; v < kAtOnce; ++v) sum[0] ^= sum[v];
  return sum[0];
}

// sum += products of bytes, or of words that hold them, as many as kProducts for each of the sums. The sum is
// a factor where products that do not depend on it would be made once.
#if defined(__AVX512VNNI__)
using Sums = __m512i;
constexpr int kProducts = 4;
Sums MultiplyAdd(Sums sum, Sums a) { return _mm512_dpbusd_epi32(sum, a, a); }
#elif defined(__AVXVNNI__)
using Sums = __m256i;
constexpr int kProducts = 4;
Sums MultiplyAdd(Sums sum, Sums a) { return _mm256_dpbusd_avx_epi32(sum, a, a); }
#elif defined(__AVX512BW__)
using Sums = __m512i;
constexpr int kProducts = 2;
Sums MultiplyAdd(Sums sum, Sums a) { return _mm512_add_epi32(sum, _mm512_madd_epi16(sum, a)); }
#elif defined(NEUROEVO_AVX2)
using Sums = __m256i;
constexpr int kProducts = 2;
Sums MultiplyAdd(Sums sum, Sums a) { return _mm256_add_epi32(sum, _mm256_madd_epi16(sum, a)); }
#else
using Sums = RawWords;
constexpr int kProducts = 1;
Sums MultiplyAdd(Sums sum, Sums a) { return sum + sum * a; }
#endif

// Billions of operations a second of kChains independent chains of step(sum, value), which should be more than a step's
// latency times its rate.
template <class Vector, int kChains, class Step>
double ChainRate(double operations_a_step, Step step) {
  constexpr int kRounds = 4000;
  Vector sum[kChains] = {}, value;
  memset(&value, 0, sizeof(value));
  asm volatile("" : "+m"(value));  // any value, for all that the compiler knows
  const double start = Seconds();
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = step(sum[i], value);
  }
  const double seconds = Seconds() - start;
  float first = 0;
  for (int i = 0; i < kChains; ++i) {
    float part;
    memcpy(&part, &sum[i], sizeof(part));
    first += part;
  }
  sink = first;
  return operations_a_step * kChains * kRounds / seconds * 1e-9;
}

// The size of the first core's data cache of this level. (sysconf gives too much for the shared cache of some
// processors.)
int64_t CacheSize(int level, int64_t usual) {
  for (int index = 0;; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::ifstream levels(folder + "level"), types(folder + "type"), sizes(folder + "size");
    int found_level = 0;
    int64_t size = 0;
    std::string type;
    char unit = 0;
    if (!(levels >> found_level) || !(types >> type) || !(sizes >> size >> unit)) return usual;
    if (found_level == level && type != "Instruction") return size << (unit == 'M' ? 20 : 10);
  }
}

}  // namespace

Buffer::Buffer(int64_t bytes) : bytes_(bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 0, bytes);
  data_ = static_cast<char*>(memory);
}

Buffer::~Buffer() { munmap(data_, bytes_); }

Caches CacheSizes() { return {CacheSize(1, 32 << 10), CacheSize(2, 1 << 20), CacheSize(3, 32 << 20)}; }

double FmaRate() {
  return ChainRate<Floats, 12>(2.0 * kLanes, [](Floats sum, Floats value) { return Fma(value, value, sum); });
}

double Int8Rate() {
  const double operations = 2.0 * kProducts * (sizeof(Sums) / sizeof(int32_t));
  return ChainRate<Sums, kVectorRegisters == 32 ? 12 : 10>(
      operations, [](Sums sum, Sums value) { return MultiplyAdd(sum, value); });
}

double ReadRate(const Buffer& buffer, int64_t begin, int64_t bytes, int times, int64_t ahead) {
  const double start = Seconds();
  for (int i = 0; i < times; ++i) sink = static_cast<float>(Xor(buffer.data() + begin, bytes, ahead)[0]);
  return static_cast<double>(bytes) * times / (Seconds() - start) * 1e-9;
}

double CopyRate(const Buffer& from, const Buffer& to, int64_t begin, int64_t bytes) {
  const double start = Seconds();
  memcpy(to.data() + begin, from.data() + begin, bytes);
  return static_cast<double>(bytes) / (Seconds() - start) * 1e-9;
}

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double Microseconds(const std::function<void()>& run) {
  const double start = Seconds();
  run();
  return (Seconds() - start) * 1e6;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace neuroevo
