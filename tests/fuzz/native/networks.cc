// Fuzzes the text of networks (networks/network.h), up to a '|': what follows that is a seed. A text is refused with an
// Error or parsed; a small network is then played, and the backends must give the same bits, as float32, as members of
// low rank, and in integers.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/portable_math.h"
#include "core/thread_pool.h"
#include "fuzz/native/target.h"
#include "networks/network.h"
#include "population/population.h"

namespace neuroevo::fuzz {
namespace {

constexpr int64_t kMaxWork = 200'000;  // products or values, of one evaluation
constexpr int64_t kRows = 4, kWeightRows = 2, kReference = 3;

// How much an evaluation takes, about.
double Work(const Network& network) {
  double work = static_cast<double>(network.input_size() + network.row_size());
  for (const Layer& layer : network.layers()) {
    const double window = std::max(1.0, double(layer.kernel_h) * layer.kernel_w);
    const double padded = (double(layer.in[0]) + layer.kernel_h) * (double(layer.in[1]) + layer.kernel_w) * layer.in[2];
    const double positions = double(layer.out[0]) * layer.out[1];
    work += padded + positions * (layer.matrix() ? double(layer.weights) : window * layer.out[2]);
  }
  return work;
}

// Of a size each time, with zeros: products and sums that are ordinary, denormal or nothing.
std::vector<float> Values(Random* random, int64_t n) {
  static const float kSizes[] = {1.8f, 100.0f, 1e-20f, 1e-38f, 1e-42f, 1.4e-45f};
  const float size = kSizes[random->Below(6)];
  std::vector<float> values(n);
  for (float& value : values) {
    value = random->Chance(15) ? 0.0f : size * (0.5f + 0.001f * static_cast<float>(random->Below(500)));
    if (random->Chance(50)) value = -value;
  }
  return values;
}

std::vector<char> Observations(const Network& network, Random* random, int64_t count) {
  const int64_t values = count * network.input_size();
  std::vector<char> bytes(values * static_cast<int64_t>(SizeOf(network.input_dtype())));
  if (network.input_dtype() == DType::kUint8) {
    for (char& value : bytes) value = static_cast<char>(random->Chance(50) ? 0 : random->Below(256));
  } else {
    const std::vector<float> floats = Values(random, values);
    std::memcpy(bytes.data(), floats.data(), bytes.size());
  }
  return bytes;
}

struct Way {
  DType dtype;
  int rank;
};

// What rows 0 and 1, and with a rank 2 members of row 0, make of some steps; the reason where the backend refuses.
struct Played {
  std::vector<float> outputs;
  std::string refused;
};

Played Play(const char* backend, const Network& network, const Way& way, const std::string& seed) {
  static const auto pool = std::make_shared<ThreadPool>(1);
  Random random(seed);
  Played played;
  try {
    const auto population =
        Population::Make(backend, {network}, kRows, pool, way.dtype, way.rank == 0 ? -1 : kWeightRows, way.rank);
    population->Init({0}, {0}, {random.Next()});
    const std::vector<float> theta = Values(&random, network.dimension());
    population->Assign({1}, {0}, theta.data(), network.dimension());
    population->Perturb({2, 3}, {0, 0}, {random.Next(), random.Next()}, {0.02f, 0.0f});
    const std::vector<char> batch = Observations(network, &random, kReference);
    population->SetReference(batch.data(), kReference);
    population->Prepare({0, 1, 2, 3});
    population->ClearStates({0, 1, 2, 3});
    std::vector<char> observations = Observations(network, &random, kRows);
    std::vector<float> outputs(kRows * network.output_size());
    for (int step = 0; step < 3; ++step) {
      population->Forward({0, 1, 2, 3}, observations.data(), outputs.data(), {3, 2, 1, 0});
      played.outputs.insert(played.outputs.end(), outputs.begin(), outputs.end());
      // Most of it stays, so that what backends remember of a slot counts.
      const std::vector<char> other = Observations(network, &random, kRows);
      const int64_t value = static_cast<int64_t>(SizeOf(network.input_dtype()));
      for (int64_t i = 0; i < static_cast<int64_t>(other.size()); i += value * (1 + random.Below(40))) {
        std::copy_n(&other[i], value, &observations[i]);
      }
    }
  } catch (const Error& error) {
    played.refused = error.what();
  }
  return played;
}

void Compare(const Network& network, const std::string& seed) {
  for (const Way& way : {Way{DType::kFloat32, 0}, Way{DType::kFloat32, 2}, Way{DType::kInt8, 0}}) {
    const Played expected = Play("reference", network, way, seed), played = Play("cpu", network, way, seed);
    Require(played.refused == expected.refused, "cpu refuses with '", played.refused, "', reference with '",
            expected.refused, "'");
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
      const float value = played.outputs[i], wanted = expected.outputs[i];
      Require(ToBits(value) == ToBits(wanted) || (std::isnan(value) && std::isnan(wanted)), NameOf(way.dtype),
              " of rank ", way.rank, ": output ", i, " is ", value, " on the cpu backend, ", wanted, " on reference");
    }
  }
}

}  // namespace
}  // namespace neuroevo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neuroevo;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t bar = std::min(input.find('|'), input.size());
  try {
    const Network network = Network::Parse(input.substr(0, bar));
    if (fuzz::Work(network) <= fuzz::kMaxWork) fuzz::Compare(network, input.substr(bar));
  } catch (const Error&) {
  }
  return 0;
}
