// Recurrent networks on a GPU: every step is bit-identical to the CPU's, for any sharing of rows and any states.
#include "native/on_gpu/rows.h"

using namespace neuroevo;

namespace {

const std::vector<std::string> kNetworks = {
    "input float32 5; lstm 1 1",
    "input float32 5; bias; lstm 19 1; dense 3 1; bias; tanh; lstm 33 1; dense 4 1",
    "input uint8 8 7 2; conv 5 3 3 2 same 1; bias; relu; lstm 24 1; layer_norm; lstm 8 1; silu; dense 4 1; bias",
    "input uint8 6 6 3; max_pool 2 2 2 valid; lstm 20 1; dense 4 1",
    "input uint8 40; lstm 16 1; dense 4 1; bias",
};

template <class T>
void CheckSteps(const std::string& text) {
  const int64_t rows = FullSize() ? 300 : 12;
  for (Sharing sharing : kSharings) {
    Both both({text}, rows);
    both.Fill();
    std::vector<int64_t> states(rows);
    for (int64_t i = 0; i < rows; ++i) states[i] = (7 * i + 5) % rows;
    both.Do([&](Population& population) { population.ClearStates(states); });
    std::vector<float> last;
    for (int64_t step = 0; step < 4; ++step) {
      const std::vector<int64_t> played = RowsOf(sharing, rows - step, rows, 3);  // some slots end
      const std::vector<int64_t> live(states.begin(), states.begin() + (rows - step));
      const auto seen = Observations<T>(both.cpu.population->networks()[0], played.size(), 40);
      std::vector<float> outs[2];
      both.Do([&](Population& population) {
        std::vector<float>& out = outs[&population == both.cpu.population.get()];
        out.resize(played.size() * both.cpu.A());
        population.Forward(played, seen.data(), out.data(), live);
      });
      CheckSame(outs[0], outs[1], Concat("'", text, "', step ", step));
      CHECK(outs[1] != last);
      last = outs[1];
      if (step == 1) both.Do([&](Population& population) { population.ClearStates({states[0], states[3]}); });
    }
  }
}

}  // namespace

TEST(EveryStepIsTheCpus) {
  NotForThreadSanitizer();
  for (const std::string& text : kNetworks) {
    Network::Parse(text).input_dtype() == DType::kUint8 ? CheckSteps<uint8_t>(text) : CheckSteps<float>(text);
  }
}

TEST(StatesAreCheckedAsOnTheCpu) {
  NeedGpu();
  Rows gpu(NEUROEVO_CUDA_BACKEND, {kNetworks[0]}, 3);
  gpu.population->Init({0}, {0}, {1});
  gpu.population->ClearStates({0});
  std::vector<float> x(10), out(10);
  CHECK_THROWS(gpu.population->Forward({0, 0}, x.data(), out.data()), "there are 0 states, expected 2");
  CHECK_THROWS(gpu.population->Forward({0, 0}, x.data(), out.data(), {0, 1}), "state 1 was never cleared");
}
