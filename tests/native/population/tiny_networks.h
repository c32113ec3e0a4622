// Random networks whose products underflow, so that sums are zeros of both signs. They are evaluated in several ways,
// which must give bit-identical results.
#ifndef NEUROEVO_TESTS_NATIVE_POPULATION_TINY_NETWORKS_H_
#define NEUROEVO_TESTS_NATIVE_POPULATION_TINY_NETWORKS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/philox.h"
#include "native/check.h"
#include "population/population.h"

namespace neuroevo::tiny_networks {

constexpr int64_t kWeightRows = 3, kRows = 6, kSlots = 12;

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint64_t Next() { return PhiloxWords(seed_, index_++).word[0]; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  float Sign() { return Chance(50) ? 1.0f : -1.0f; }

 private:
  uint64_t seed_;
  int64_t index_ = 0;
};

inline std::string Activation(Random* random) {
  static const char* const kAll[] = {"relu", "tanh", "silu", "gelu", "leaky_relu 0.1", "layer_norm", "vbn", "bias"};
  std::string text;
  if (random->Chance(40)) text += "vbn; ";
  if (random->Chance(50)) text += "bias; ";
  return random->Chance(20) ? text : text + kAll[random->Below(8)] + "; ";
}

// Returns a network of a few narrow or wide convolutions and dense layers.
inline std::string RandomNetwork(Random* random) {
  const bool image = random->Chance(60);
  std::string text = random->Chance(50) ? "input uint8 " : "input float32 ";
  if (!image) {
    text += Concat(1 + random->Below(40), "; ");
  } else {
    text += Concat(3 + random->Below(8), " ", 3 + random->Below(8), " ", 1 + random->Below(5), "; ");
    for (int64_t layers = random->Below(3); layers >= 0; --layers) {
      text += Concat("conv ", 1 + random->Below(random->Chance(30) ? 70 : 20), " ", 1 + random->Below(3), " ",
                     1 + random->Below(3), " ", 1 + random->Below(2), " same 1; ", Activation(random));
    }
    if (random->Chance(20)) text += random->Chance(50) ? "max_pool 2 2 2 same; " : "avg_pool 2 2 1 same; ";
  }
  for (int64_t layers = random->Below(3); layers > 0; --layers) {
    text += Concat("dense ", 1 + random->Below(random->Chance(30) ? 300 : 40), " 1; ", Activation(random));
  }
  return text + Concat("dense ", 1 + random->Below(20), " 1", random->Chance(50) ? "; bias" : "");
}

// Returns a weight or input of the given magnitude, or zero, so that products and sums are normal, denormal or zero.
inline float Value(Random* random, int64_t size) {
  static const float kSizes[] = {1.8f, 1e-20f, 1e-30f, 1e-38f, 1e-42f, 1.4e-45f};
  if (random->Chance(15)) return 0.0f * random->Sign();
  return random->Sign() * kSizes[size] * (0.5f + 0.001f * static_cast<float>(random->Below(500)));
}

inline std::vector<float> Values(Random* random, int64_t n) {
  std::vector<float> values(n);
  const int64_t size = random->Below(6);
  const bool mixed = random->Chance(30);
  for (float& value : values) value = Value(random, mixed ? random->Below(6) : size);
  return values;
}

// Way of evaluating slots: the backend, whether it may cache their last step, and whether slots have separate calls.
struct Way {
  const char* backend;
  bool remembers, alone;
};

struct Player {
  std::unique_ptr<Population> population;
  Way way;
};

inline std::vector<float> Outputs(const Player& player, const std::vector<int64_t>& rows,
                                  const std::vector<char>& observations) {
  Population& population = *player.population;
  const int64_t outputs = population.networks()[0].output_size();
  const size_t bytes = observations.size() / rows.size();
  std::vector<float> out(rows.size() * outputs);
  if (player.way.alone) {
    for (size_t s = 0; s < rows.size(); ++s) {
      population.Forward({rows[s]}, observations.data() + s * bytes, out.data() + s * outputs);
    }
    return out;
  }
  std::vector<int64_t> states;
  for (size_t s = 0; s < rows.size() && player.way.remembers; ++s) states.push_back(static_cast<int64_t>(s));
  population.Forward(rows, observations.data(), out.data(), states);
  return out;
}

// Evaluates a random network with rows of weights and members; all ways must be bit-identical to the first.
inline void CheckNetwork(uint64_t seed, const std::vector<Way>& ways, std::string (*make)(Random*) = RandomNetwork) {
  Random random(seed);
  const std::string text = make(&random);
  const int rank = 1 + static_cast<int>(random.Below(3));
  std::vector<Player> players;
  for (const Way& way : ways) {
    players.push_back({Population::Make(way.backend, {Network::Parse(text)}, kSlots, std::make_shared<ThreadPool>(1),
                                        DType::kFloat32, kWeightRows, rank),
                       way});
  }
  const Network& network = players[0].population->networks()[0];
  const bool bytes = network.input_dtype() == DType::kUint8;
  const auto observe = [&](int64_t count) {
    std::vector<char> seen(count * network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype())));
    if (bytes) {
      for (char& value : seen) value = static_cast<char>(random.Chance(50) ? 0 : random.Below(256));
    } else {
      float* floats = reinterpret_cast<float*>(seen.data());
      for (int64_t slot = 0; slot < count; ++slot) {
        const std::vector<float> own = Values(&random, network.input_size());
        std::copy(own.begin(), own.end(), floats + slot * network.input_size());
      }
    }
    return seen;
  };
  for (int64_t row = 0; row < kWeightRows; ++row) {
    std::vector<float> theta;
    for (const Layer& layer : network.layers()) {
      const std::vector<float> own = Values(&random, layer.weights);
      theta.insert(theta.end(), own.begin(), own.end());
    }
    for (Player& each : players) each.population->Assign({row}, {0}, theta.data(), network.dimension());
  }
  for (int64_t row = kWeightRows; row < kRows; ++row) {
    const int64_t center = random.Below(kWeightRows);
    const uint64_t noise = random.Next();
    const float scale = Value(&random, random.Below(6));
    for (Player& each : players) each.population->Perturb({row}, {center}, {noise}, {scale});
  }
  const std::vector<char> batch = observe(3);
  std::vector<int64_t> rows(kSlots);
  for (int64_t& row : rows) row = random.Below(kRows);
  for (Player& each : players) {
    each.population->SetReference(batch.data(), 3);
    each.population->Prepare(rows);
  }
  std::vector<char> observations = observe(kSlots);
  for (int step = 0; step < 2; ++step) {
    const std::vector<float> expected = Outputs(players[0], rows, observations);
    for (size_t b = 1; b < players.size(); ++b) {
      const std::vector<float> out = Outputs(players[b], rows, observations);
      for (size_t i = 0; i < out.size(); ++i) {
        if (ToBits(out[i]) == ToBits(expected[i])) continue;
        check::Fail(__FILE__, __LINE__,
                    Concat("network ", seed, " '", text, "' of rank ", rank, ", way ", b, ", value ", i, " is ", out[i],
                           " of bits ", ToBits(out[i]), ", expected bits ", ToBits(expected[i])));
      }
    }
    const std::vector<char> other = observe(kSlots);  // partly unchanged, so that the slots' memory is used
    for (size_t i = 0; i < other.size(); i += 4 + random.Below(40)) {
      if (bytes) observations[i] = other[i];
      if (!bytes && i % 4 == 0) std::copy_n(&other[i], 4, &observations[i]);
    }
  }
}

}  // namespace neuroevo::tiny_networks

#endif  // NEUROEVO_TESTS_NATIVE_POPULATION_TINY_NETWORKS_H_
