// Which backends there are, and how they are made.
#include <map>
#include <utility>

#include "core/error.h"
#include "population/host_population.h"
#include "population/int8/host_population.h"

namespace neuroevo {

namespace {

std::map<std::string, Population::Maker>& Makers() {
  static std::map<std::string, Population::Maker> makers;
  return makers;
}

}  // namespace

Population::Register::Register(const char* backend, Maker maker) { Makers()[backend] = maker; }

std::unique_ptr<Population> Population::Make(const std::string& backend, std::vector<Network> networks, int64_t rows,
                                             std::shared_ptr<ThreadPool> pool, DType dtype, int64_t float_rows,
                                             std::shared_ptr<MemorySource> memory, int rank) {
  if (dtype != DType::kFloat32 && dtype != DType::kInt8) {
    ThrowInvalid("dtype is ", NameOf(dtype), ", expected float32 or int8");
  }
  if (rank != 0 && dtype == DType::kInt8) ThrowInvalid("rank is ", rank, " with dtype int8, expected dtype float32");
  const auto registered = Makers().find(backend);
  if (registered != Makers().end()) {
    return registered->second(std::move(networks), rows, std::move(pool), dtype, float_rows, std::move(memory), rank);
  }
  const bool cpu = backend == "cpu";
  if (!cpu && backend != "reference") {
    std::string others;
    for (const auto& [name, maker] : Makers()) others += " or '" + name + "'";
    ThrowInvalid("backend is '", backend, "', expected 'cpu' or 'reference'", others);
  }
  const auto make = cpu ? MakeCpuPopulation : MakeReferencePopulation;
  std::unique_ptr<HostPopulation> floats =
      make(std::move(networks), rows, std::move(pool), rank, rank == 0 ? -1 : float_rows);
  if (dtype == DType::kFloat32) return floats;
  return std::make_unique<Int8HostPopulation>(
      std::move(floats), cpu ? MakeInt8CpuBackend() : MakeInt8ReferenceBackend(), rows, float_rows);
}

}  // namespace neuroevo
