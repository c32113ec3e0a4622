// Shared code of the GPU backend's tests: pairs of equal populations on the GPU and the CPU, and the networks and lists
// of rows to evaluate. The same tests run on a GPU (backend "cuda", target gpu_tests) and, at reduced sizes, on the CPU
// (backend "cuda_emulated", target native_tests).
#ifndef NEUROEVO_TESTS_NATIVE_ON_GPU_ROWS_H_
#define NEUROEVO_TESTS_NATIVE_ON_GPU_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/noise.h"
#include "core/philox.h"
#include "gpu/device.h"
#include "native/check.h"
#include "population/population.h"

namespace neuroevo {

inline const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";

// Value of NEUROEVO_GPU_TESTS. small: reduced sizes also on a GPU, for slow tools. needed: fail without a GPU.
inline std::string GpuTests() {
  const char* value = std::getenv("NEUROEVO_GPU_TESTS");
  return value == nullptr ? "" : value;
}

inline bool FullSize() { return std::string(NEUROEVO_CUDA_BACKEND) == "cuda" && GpuTests() != "small"; }

// Skips the test under the thread sanitizer, which slows emulated kernels down a hundredfold.
inline void NotForThreadSanitizer() {
#ifdef __SANITIZE_THREAD__
  SKIP("too slow under the thread sanitizer");
#endif
}

// Skips the test if no GPU is available.
inline void NeedGpu() {
  try {
    device::CheckAvailable();
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kNotFound || GpuTests() == "needed") throw;
    SKIP(error.what());
  }
}

// Population with short versions of its calls.
struct Rows {
  std::unique_ptr<Population> population;

  Rows(const std::string& backend, const std::vector<std::string>& texts, int64_t rows, DType dtype = DType::kFloat32,
       int64_t float_rows = -1, int rank = 0) {
    std::vector<Network> networks;
    for (const std::string& text : texts) networks.push_back(Network::Parse(text));
    population = Population::Make(backend, networks, rows, std::make_shared<ThreadPool>(4), dtype, float_rows, rank);
  }
  int64_t D(int network = 0) const { return population->networks()[network].dimension(); }
  int64_t A() const { return population->networks()[0].output_size(); }

  void Assign(int64_t row, int network, const std::vector<float>& theta) {
    population->Assign({row}, {network}, theta.data(), D(network));
  }
  std::vector<float> Read(int64_t row, int network = 0) const {
    std::vector<float> theta(D(network));
    population->Read({row}, theta.data(), D(network));
    return theta;
  }
  template <class T>
  std::vector<float> Forward(const std::vector<int64_t>& rows, const std::vector<T>& observations) const {
    std::vector<float> out(rows.size() * A());
    population->Forward(rows, observations.data(), out.data());
    return out;
  }
};

// Equal populations on the GPU and on the CPU.
struct Both {
  Rows gpu, cpu;

  Both(const std::vector<std::string>& texts, int64_t rows, DType dtype = DType::kFloat32, int64_t float_rows = -1,
       int rank = 0)
      : gpu((NeedGpu(), NEUROEVO_CUDA_BACKEND), texts, rows, dtype, float_rows, rank),
        cpu("cpu", texts, rows, dtype, float_rows, rank) {}

  template <class Call>
  void Do(Call call) {
    call(*gpu.population);
    call(*cpu.population);
  }
  // Fills row r with weights of network r % networks and nonzero biases.
  void Fill(uint64_t seed = 1) {
    Do([&](Population& population) {
      std::vector<int64_t> rows(population.rows());
      std::iota(rows.begin(), rows.end(), 0);
      std::vector<int32_t> network;
      std::vector<uint64_t> seeds;
      for (int64_t row : rows) {
        network.push_back(static_cast<int32_t>(row % static_cast<int64_t>(population.networks().size())));
        seeds.push_back(seed + static_cast<uint64_t>(row));
      }
      population.Init(rows, network, seeds);
      population.Perturb(rows, rows, seeds, std::vector<float>(rows.size(), 0.05f));
    });
  }
};

inline void CheckSame(const std::vector<float>& gpu, const std::vector<float>& cpu, const std::string& what = "") {
  CHECK_EQ(gpu.size(), cpu.size());
  for (size_t i = 0; i < gpu.size(); ++i) {
    if (ToBits(gpu[i]) == ToBits(cpu[i])) continue;
    check::Fail(__FILE__, __LINE__,
                Concat(what, " value ", i, " is ", gpu[i], " of bits ", ToBits(gpu[i]), ", expected ", cpu[i],
                       " of bits ", ToBits(cpu[i])));
  }
}

// Returns observations of the slots, partly zero.
template <class T>
std::vector<T> Observations(const Network& network, size_t slots, uint64_t seed) {
  std::vector<T> values(slots * network.input_size());
  for (size_t i = 0; i < values.size(); ++i) {
    const float z = Noise(seed, i);
    values[i] = std::is_same_v<T, float> ? static_cast<T>(i % 3 == 0 ? 0 : z)
                                         : static_cast<T>(z < 0 ? 0 : std::min(255.0f, z * 80));
  }
  return values;
}

// Assignment of n rows to the k slots of a call: distinct rows, a single row, or a mix of single and shared rows.
enum class Sharing { kNone, kAll, kMixed };
constexpr Sharing kSharings[] = {Sharing::kNone, Sharing::kAll, Sharing::kMixed};

inline std::vector<int64_t> RowsOf(Sharing sharing, int64_t k, int64_t n, uint64_t seed) {
  std::vector<int64_t> rows(k);
  for (int64_t i = 0; i < k; ++i) {
    const Philox words = PhiloxWords(seed, i);
    if (sharing == Sharing::kNone) rows[i] = i % n;
    if (sharing == Sharing::kAll) rows[i] = n / 2;
    if (sharing == Sharing::kMixed) rows[i] = words.word[0] % 3 == 0 ? words.word[1] % 2 : words.word[2] % n;
  }
  if (sharing == Sharing::kNone) {
    for (int64_t i = k - 1; i > 0; --i) std::swap(rows[i], rows[PhiloxWords(seed, i).word[3] % (i + 1)]);
  }
  return rows;
}

inline bool AnyNonZero(const std::vector<float>& values) {
  return std::any_of(values.begin(), values.end(), [](float x) { return x != 0; });
}

// Runs the same call on both and checks that the results are bit-identical. Returns them.
inline std::vector<float> CheckForward(const Both& both, const std::vector<int64_t>& rows, uint64_t seed,
                                       const std::string& what) {
  const Network& network = both.cpu.population->networks()[0];
  std::vector<float> gpu, cpu;
  const auto run = [&](const auto& observations) {
    gpu = both.gpu.Forward(rows, observations);
    cpu = both.cpu.Forward(rows, observations);
  };
  if (network.input_dtype() == DType::kUint8) {
    run(Observations<uint8_t>(network, rows.size(), seed));
  } else {
    run(Observations<float>(network, rows.size(), seed));
  }
  CheckSame(gpu, cpu, what);
  return gpu;
}

}  // namespace neuroevo

#endif  // NEUROEVO_TESTS_NATIVE_ON_GPU_ROWS_H_
