// Registry and factory of population backends.
#include <map>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/fork.h"
#include "core/memory.h"
#include "population/host_population.h"
#include "population/int8/host_population.h"

namespace neuroevo {

namespace {

struct Registry {
  ProcessMutex mutex;
  std::map<std::string, Population::Maker> makers;
};

Registry& Backends() {
  static auto* registry = new Registry();  // never destroyed: threads may create populations while the process exits
  return *registry;
}

}  // namespace

Population::Register::Register(const char* backend, Maker maker) {
  const ProcessLock lock(Backends().mutex);
  Backends().makers[backend] = maker;
}

std::unique_ptr<Population> Population::Make(const std::string& backend, std::vector<Network> networks, int64_t rows,
                                             std::shared_ptr<ThreadPool> pool, DType dtype, int64_t float_rows,
                                             int rank) {
  if (dtype != DType::kFloat32 && dtype != DType::kInt8) {
    ThrowInvalid("dtype is ", NameOf(dtype), ", expected float32 or int8");
  }
  if (rank != 0 && dtype == DType::kInt8) ThrowInvalid("rank is ", rank, " with dtype int8, expected dtype float32");
  Maker registered = nullptr;
  std::string others;
  {
    const ProcessLock lock(Backends().mutex);
    for (const auto& [name, maker] : Backends().makers) {
      if (name == backend) registered = maker;
      others += " or '" + name + "'";
    }
  }
  if (registered != nullptr) {
    return registered(std::move(networks), rows, std::move(pool), dtype, float_rows, rank);
  }
  const bool cpu = backend == "cpu";
  if (!cpu && backend != "reference") ThrowInvalid("backend is '", backend, "', expected 'cpu' or 'reference'", others);
  const auto make = cpu ? MakeCpuPopulation : MakeReferencePopulation;
  std::unique_ptr<HostPopulation> floats =
      make(std::move(networks), rows, std::move(pool), rank, rank == 0 ? -1 : float_rows);
  if (dtype == DType::kFloat32) {
    CheckMemory(Concat(rows, " rows of networks"), floats->Bytes(rows));
    return floats;
  }
  const int64_t bytes = floats->Bytes(Int8Population::FloatRows(float_rows, rows));
  auto integers = std::make_unique<Int8HostPopulation>(
      std::move(floats), cpu ? MakeInt8CpuBackend() : MakeInt8ReferenceBackend(), rows, float_rows);
  CheckMemory(Concat(rows, " rows of networks"), bytes + integers->Bytes());
  return integers;
}

}  // namespace neuroevo
