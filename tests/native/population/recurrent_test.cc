// Recurrent networks on the CPU: a cell computed by hand, bit-identical backends over several steps, independent states
// of slots, and every error.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/noise.h"
#include "native/check.h"
#include "population/population.h"

using namespace neuroevo;

namespace {

std::unique_ptr<Population> Make(const std::string& backend, const std::vector<std::string>& texts, int64_t rows,
                                 int threads = 2) {
  std::vector<Network> networks;
  for (const std::string& text : texts) networks.push_back(Network::Parse(text));
  return Population::Make(backend, networks, rows, std::make_shared<ThreadPool>(threads));
}

std::vector<float> Observations(int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = i % 3 == 0 ? 0 : Noise(seed, i);
  return values;
}

std::vector<float> Forward(Population* population, const std::vector<int64_t>& rows,
                           const std::vector<float>& observations, const std::vector<int64_t>& states) {
  std::vector<float> out(rows.size() * population->networks()[0].output_size());
  population->Forward(rows, observations.data(), out.data(), states);
  return out;
}

void CheckSame(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK_EQ(ToBits(a[i]), ToBits(b[i]));
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const std::vector<std::string> kNetworks = {
    "input float32 5; lstm 1 1",
    "input float32 5; bias; lstm 19 1; dense 3 1; bias; tanh; lstm 33 1; dense 4 1",
    "input float32 6 5 2; conv 3 3 3 2 same 1; bias; relu; lstm 16 1; layer_norm; lstm 8 1; silu; dense 4 1; bias",
    "input float32 4 4 3; max_pool 2 2 2 valid; lstm 20 1; dense 4 1",
};

}  // namespace

TEST(ACellByHand) {
  for (const std::string backend : {"cpu", "reference"}) {
    const auto population = Make(backend, {"input float32 1; lstm 1 1"}, 1);
    // Weights of the input, then of h, then biases, each for the gates i, f, g and o.
    const std::vector<float> theta = {0.5f, -1.0f, 2.0f, 0.25f, 1.0f, 0.5f, -0.75f, -2.0f, 0.1f, 0.2f, 0.3f, 0.4f};
    population->Assign({0}, {0}, theta.data(), 12);
    population->ClearStates({0});
    double h = 0, c = 0;
    for (const float x : {1.0f, -2.0f, 0.5f, 0.0f, 3.0f}) {
      double gates[4];
      for (int k = 0; k < 4; ++k) gates[k] = theta[k] * x + theta[4 + k] * h + theta[8 + k];
      c = Sigmoid(gates[1]) * c + Sigmoid(gates[0]) * std::tanh(gates[2]);
      h = Sigmoid(gates[3]) * std::tanh(c);
      CHECK(std::abs(Forward(population.get(), {0}, {x}, {0})[0] - h) < 1e-6);
    }
  }
}

TEST(CpuIsTheReferenceBitByBitOverSteps) {
  for (const std::string& text : kNetworks) {
    const auto cpu = Make("cpu", {text}, 20), reference = Make("reference", {text}, 20);
    const int64_t inputs = cpu->networks()[0].input_size();
    // Row 0 has eleven slots, more than one task; the numbers of the states are unrelated to the rows.
    const std::vector<int64_t> rows = {0, 3, 0, 1, 0, 0, 3, 0, 0, 0, 2, 0, 3, 0, 0};
    std::vector<int64_t> states;
    for (size_t i = 0; i < rows.size(); ++i) states.push_back((7 * i + 5) % 20);
    for (Population* each : {cpu.get(), reference.get()}) {
      each->Init({0, 1, 2, 3}, {0, 0, 0, 0}, {1, 2, 3, 4});
      each->Perturb({0, 1, 2, 3}, {0, 1, 2, 3}, {5, 6, 7, 8}, {0.1f, 0.1f, 0.1f, 0.1f});
      each->ClearStates(states);
    }
    std::vector<float> last;
    for (uint64_t step = 0; step < 5; ++step) {
      const auto seen = Observations(static_cast<int64_t>(rows.size()) * inputs, 40);  // the same in every step
      const auto out = Forward(cpu.get(), rows, seen, states);
      CheckSame(out, Forward(reference.get(), rows, seen, states));
      CHECK(out != last);  // the state has changed
      last = out;
      if (step == 2) {
        for (Population* each : {cpu.get(), reference.get()}) each->ClearStates({states[1], states[7]});
      }
    }
  }
}

TEST(AStateIsTheSlotsOwn) {
  const auto all = Make("cpu", {kNetworks[1]}, 12, 3), alone = Make("cpu", {kNetworks[1]}, 12, 1);
  for (Population* each : {all.get(), alone.get()}) {
    each->Init({0, 1}, {0, 0}, {1, 2});
    each->ClearStates({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  }
  const std::vector<int64_t> rows = {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  std::vector<std::vector<float>> seen, together;
  for (uint64_t step = 0; step < 4; ++step) {
    seen.push_back(Observations(12 * 5, step));
    together.push_back(Forward(all.get(), rows, seen.back(), {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}));
  }
  for (int64_t slot = 0; slot < 12; ++slot) {  // one episode per slot, sequentially, in another state
    for (int step = 0; step < 4; ++step) {
      const auto from = seen[step].begin() + slot * 5;
      const auto out = Forward(alone.get(), {rows[slot]}, {from, from + 5}, {slot});
      CheckSame(out, {together[step].begin() + slot * 4, together[step].begin() + (slot + 1) * 4});
    }
  }
  // A cleared state is equivalent to a new state.
  alone->ClearStates({3});
  CheckSame(Forward(alone.get(), {rows[3]}, {seen[0].begin() + 15, seen[0].begin() + 20}, {3}),
            {together[0].begin() + 12, together[0].begin() + 16});
}

TEST(NetworksWithAndWithoutStatesInOneCall) {
  const std::string plain = "input float32 5; dense 4 1";
  const auto both = Make("cpu", {kNetworks[1], plain}, 4), one = Make("cpu", {plain}, 4);
  both->Init({0, 1}, {0, 1}, {1, 2});
  one->Init({1}, {0}, {2});
  both->ClearStates({2, 3});
  const auto seen = Observations(10, 3);
  const auto out = Forward(both.get(), {0, 1}, seen, {2, 3});
  CheckSame({out.begin() + 4, out.end()}, Forward(one.get(), {1}, {seen.begin() + 5, seen.end()}, {}));
  CHECK(both->recurrent() && !one->recurrent());
  one->ClearStates({0});  // does nothing
}

TEST(RecurrentErrors) {
  for (const std::string backend : {"cpu", "reference"}) {
    const auto population = Make(backend, {kNetworks[0]}, 3);
    population->Init({0}, {0}, {1});
    std::vector<float> x(10), out(10);
    const auto forward = [&](const std::vector<int64_t>& states) {
      population->Forward({0, 0}, x.data(), out.data(), states);
    };
    population->ClearStates({0, 1});
    CHECK_THROWS(forward({}), "networks are recurrent, and there are 0 states, expected 2, one for each row");
    CHECK_THROWS(forward({0}), "there are 1 states, expected 2");
    CHECK_THROWS(forward({0, 3}), "state 3 is out of range [0, 3)");
    CHECK_THROWS(forward({0, -1}), "state -1 is out of range [0, 3)");
    CHECK_THROWS(forward({1, 1}), "state 1 is given twice, expected different states");
    CHECK_THROWS(forward({0, 2}), "state 2 was never cleared: call ClearStates when an episode begins");
    CHECK_THROWS(population->ClearStates({0, 3}), "state 3 is out of range [0, 3)");
    forward({0, 1});
  }
}
