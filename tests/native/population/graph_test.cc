// Graph layers on the CPU: values computed by hand, bit-identical backends, equality with a dense network, and errors.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/noise.h"
#include "native/check.h"
#include "native/population/tiny_networks.h"
#include "population/population.h"

using namespace neuroevo;
using tiny_networks::Random;

namespace {

std::unique_ptr<Population> Make(const std::string& backend, const std::string& text, DType dtype = DType::kFloat32) {
  return Population::Make(backend, {Network::Parse(text)}, 4, std::make_shared<ThreadPool>(1), dtype);
}

std::vector<float> Forward(Population* population, const std::vector<float>& observation) {
  std::vector<float> out(population->networks()[0].output_size());
  population->Forward({0}, observation.data(), out.data());
  return out;
}

// Returns a network with a graph of no, some or all edges, alone or between other layers.
std::string RandomGraph(Random* random) {
  int64_t inputs = 1 + random->Below(random->Chance(20) ? 60 : 9);
  std::string text = Concat(random->Chance(30) ? "input uint8 " : "input float32 ", inputs, "; ");
  if (random->Chance(30)) {
    inputs = 1 + random->Below(20);
    text += Concat("dense ", inputs, " 1; ", tiny_networks::Activation(random));
  }
  const int64_t outputs = 1 + random->Below(5), hidden = random->Below(random->Chance(20) ? 40 : 6);
  text += Concat("graph ", hidden + outputs, " ", outputs, " 1");
  const int percent = static_cast<int>(random->Below(101));
  for (int64_t to = inputs; to < inputs + hidden + outputs; ++to) {
    for (int64_t from = 0; from < std::min(to, inputs + hidden); ++from) {
      if (random->Chance(percent)) text += Concat(" ", from, ">", to);
    }
  }
  if (random->Chance(30)) text += "; tanh";
  return random->Chance(30) ? text + "; dense 3 1; bias" : text;
}

}  // namespace

TEST(ValuesByHand) {
  for (const std::string backend : {"cpu", "reference"}) {
    const auto population = Make(backend, "input float32 2; graph 4 2 1 0>2 1>2 1>3 2>3 0>4 3>4 2>5 3>5");
    // Edges in their order, then the biases of nodes 2 to 5.
    const std::vector<float> theta = {0.5f, -1.0f, 2.0f, 0.25f, 1.0f, 3.0f, -0.75f, -2.0f, 0.1f, 0.2f, 0.3f, 0.4f};
    population->Assign({0}, {0}, theta.data(), 12);
    for (const float x : {1.0f, -2.0f, 0.0f}) {
      const double y = 0.5 - x, c = std::tanh(0.5 * x - y + 0.1), d = std::tanh(2 * y + 0.25 * c + 0.2);
      const std::vector<float> out = Forward(population.get(), {x, static_cast<float>(y)});
      CHECK(std::abs(out[0] - (x + 3 * d + 0.3)) < 1e-5);  // outputs have no tanh
      CHECK(std::abs(out[1] - (-0.75 * c - 2 * d + 0.4)) < 1e-5);
    }
  }
}

TEST(CpuIsTheReferenceBitByBit) {
  const std::vector<tiny_networks::Way> ways = {
      {"reference", false, false}, {"cpu", false, true}, {"cpu", false, false}, {"cpu", true, false}};
  for (uint64_t seed = 0; seed < 300; ++seed) tiny_networks::CheckNetwork(seed, ways, RandomGraph);
}

TEST(WithAllEdgesItIsADenseNetwork) {
  const auto graph = Make("cpu", "input float32 2; graph 4 1 1 0>2 1>2 0>3 1>3 0>4 1>4 2>5 3>5 4>5");
  const auto dense = Make("cpu", "input float32 2; dense 3 1; bias; tanh; dense 1 1; bias");
  const std::vector<float> of_graph = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0.1f, 0.2f, 0.3f, 0.4f};
  const std::vector<float> of_dense = {1, 3, 5, 2, 4, 6, 0.1f, 0.2f, 0.3f, 7, 8, 9, 0.4f};
  graph->Assign({0}, {0}, of_graph.data(), 13);
  dense->Assign({0}, {0}, of_dense.data(), 13);
  const std::vector<float> seen = {0.1f, -0.2f};
  CHECK(std::abs(Forward(graph.get(), seen)[0] - Forward(dense.get(), seen)[0]) < 1e-5);
}

TEST(InitialWeightsHaveTheStandardDeviationWhateverTheFanIn) {
  std::string text = "input float32 1000; graph 1 1 0.5";
  for (int from = 0; from < 1000; ++from) text += Concat(" ", from, ">1000");
  const auto population = Make("cpu", text);
  population->Init({0}, {0}, {7});
  std::vector<float> theta(1001);
  population->Read({0}, theta.data(), 1001);
  for (int64_t i = 0; i < 1001; ++i) CHECK_EQ(theta[i], 0.5f * Noise(7, i));
}

TEST(IntegersAreRefused) {
  for (const std::string backend : {"cpu", "reference"}) {
    CHECK_THROWS(Make(backend, "input uint8 2; graph 1 1 1 0>2", DType::kInt8),
                 "network 0 cannot be evaluated as int8: layer 1 'graph' is not supported");
  }
}

TEST(AGraphReplacesADenseNetwork) {
  for (const std::string backend : {"cpu", "reference"}) {
    const auto population = Make(backend, "input float32 2; dense 4 1; bias; dense 1 1");
    population->Replace(0, Network::Parse("input float32 2; graph 2 1 1 0>2 1>2 2>3"));
    const std::vector<float> theta = {1, 2, 3, 0.5f, 0.25f};
    population->Assign({0}, {0}, theta.data(), 5);
    CHECK(std::abs(Forward(population.get(), {0.1f, 0.2f})[0] - (3 * std::tanh(1.0) + 0.25)) < 1e-5);
  }
}
