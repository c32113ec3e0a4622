// The memory of slots does not affect results: slots whose screens change in places, stay or are reset, and rows that
// are shared and refilled in between, compared with the same calls without slots and with the reference.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/philox.h"
#include "native/check.h"
#include "population/population.h"

using namespace neuroevo;

namespace {

const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";

// Sequence of random numbers.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint64_t Next() { return PhiloxWords(seed_, index_++).word[0]; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }

 private:
  uint64_t seed_;
  int64_t index_ = 0;
};

std::unique_ptr<Population> Make(const std::string& backend, const std::vector<std::string>& texts, int64_t rows,
                                 DType dtype, int threads) {
  std::vector<Network> networks;
  for (const std::string& text : texts) networks.push_back(Network::Parse(text));
  return Population::Make(backend, networks, rows, std::make_shared<ThreadPool>(threads), dtype);
}

// Changes an image like a screen between two steps.
void Change(Random* random, const std::array<int, 3>& shape, uint8_t* image) {
  const auto [height, width, channels] = shape;
  const int64_t kind = random->Below(8);
  if (kind == 0) return;
  if (kind == 1) {  // a new image, dark or bright, so that the scale of activations changes
    const int64_t most = random->Chance(50) ? 4 : 256;
    for (int64_t i = 0; i < ValuesOf(shape); ++i) image[i] = static_cast<uint8_t>(random->Below(most));
    return;
  }
  for (int64_t sprites = random->Below(3) + 1; sprites > 0; --sprites) {
    const int64_t top = random->Below(height), left = random->Below(width);
    const int64_t bottom = std::min<int64_t>(height, top + random->Below(6) + 1),
                  right = std::min<int64_t>(width, left + random->Below(6) + 1);
    for (int64_t y = top; y < bottom; ++y) {
      for (int64_t i = (y * width + left) * channels; i < (y * width + right) * channels; ++i) {
        image[i] = static_cast<uint8_t>(random->Chance(40) ? 0 : random->Below(256));
      }
    }
  }
}

// Compares the CPU backend with slots, the CPU backend without slots, and the reference.
void PlaySame(const std::vector<std::string>& texts, DType dtype, int64_t slots, int rounds, uint64_t seed) {
  Random random(seed);
  std::vector<std::unique_ptr<Population>> populations;
  populations.push_back(Make("cpu", texts, slots, dtype, 2));
  populations.push_back(Make("cpu", texts, slots, dtype, 1));
  populations.push_back(Make("reference", texts, slots, dtype, 2));
  const Network& first = populations[0]->networks()[0];
  const std::vector<int> dims = first.input_shape();
  const std::array<int, 3> shape = dims.size() == 3 ? std::array<int, 3>{dims[0], dims[1], dims[2]}
                                                    : std::array<int, 3>{1, 1, static_cast<int>(first.input_size())};
  const int64_t size = first.input_size(), outputs = first.output_size();
  std::vector<uint8_t> screens(slots * size);
  const auto fill = [&](int64_t row) {
    const int32_t network = static_cast<int32_t>(random.Below(static_cast<int64_t>(texts.size())));
    const uint64_t weights = random.Next();
    for (auto& population : populations) population->Init({row}, {network}, {weights});
  };
  for (int64_t row = 0; row < slots; ++row) fill(row);
  const std::vector<Network>& all = populations[0]->networks();
  if (std::any_of(all.begin(), all.end(), [](const Network& network) { return network.has_vbn(); })) {
    for (uint8_t& value : screens) value = static_cast<uint8_t>(random.Below(256));
    for (auto& population : populations) population->SetReference(screens.data(), slots);
  }
  for (int round = 0; round < rounds; ++round) {
    const int64_t changed = random.Below(slots), parent = random.Below(slots);
    if (random.Chance(10)) fill(changed);
    if (random.Chance(10)) {
      const uint64_t mutation = random.Next();
      for (auto& population : populations) population->Perturb({changed}, {parent}, {mutation}, {0.1f});
    }
    std::vector<int64_t> rows, states;
    std::vector<uint8_t> observations;
    for (int64_t slot = slots - 1; slot >= 0; --slot) {
      if (random.Chance(20)) continue;
      uint8_t* screen = screens.data() + slot * size;
      Change(&random, shape, screen);
      states.push_back(slot);
      rows.push_back(random.Chance(80) ? slot / 2 : random.Below(slots));  // usually the same row, shared by two slots
      observations.insert(observations.end(), screen, screen + size);
    }
    std::vector<std::vector<float>> results;
    for (auto& population : populations) {
      population->Prepare(rows);
      results.emplace_back(rows.size() * outputs);
      const bool has_slots = population == populations[0];
      population->Forward(rows, observations.data(), results.back().data(),
                          has_slots ? states : std::vector<int64_t>());
    }
    for (size_t other : {1, 2}) {
      for (size_t i = 0; i < results[0].size(); ++i) CHECK_EQ(ToBits(results[0][i]), ToBits(results[other][i]));
    }
  }
}

}  // namespace

TEST(IntegerNetworksAreTheSame) {
  PlaySame({"input uint8 24 21 4; conv 16 8 8 4 same 1; bias; relu; conv 20 4 4 2 same 1; bias; relu; "
            "conv 12 3 3 1 same 1; bias; relu; dense 40 1; bias; relu; dense 5 1; bias"},
           DType::kInt8, 9, 300, 1);
  PlaySame({"input uint8 9 11 3; conv 5 3 2 1 valid 1; relu; conv 40 2 2 3 same 1; bias; relu; dense 4 1",
            "input uint8 9 11 3; dense 17 1; relu; dense 9 1; bias; relu; dense 4 1",
            "input uint8 9 11 3; conv 3 1 1 1 same 1; bias; relu; dense 4 1; bias; relu"},
           DType::kInt8, 8, 500, 2);
  PlaySame({"input uint8 30 17 1; conv 70 5 7 2 valid 1; bias; relu; conv 2 13 6 1 valid 1"}, DType::kInt8, 5, 200, 3);
  PlaySame({"input uint8 128; dense 33 1; bias; relu; dense 6 1; bias"}, DType::kInt8, 6, 300, 4);
}

TEST(FloatNetworksAreTheSame) {
  PlaySame({"input uint8 24 21 4; conv 16 8 8 4 same 1; bias; relu; conv 20 4 4 2 same 1; bias; relu; "
            "conv 12 3 3 1 same 1; bias; relu; dense 40 1; bias; relu; dense 5 1; bias"},
           DType::kFloat32, 9, 300, 5);
  PlaySame({"input uint8 9 11 3; conv 5 3 2 1 valid 1; tanh; conv 40 2 2 3 same 1; bias; layer_norm; dense 4 1",
            "input uint8 9 11 3; bias; conv 6 3 3 2 same 1; max_pool 2 2 2 same; conv 9 2 2 1 same 1; relu; dense 4 1",
            "input uint8 9 11 3; dense 17 1; tanh; dense 4 1",
            "input uint8 9 11 3; conv 3 1 1 1 same 1; vbn; bias; relu; conv 33 3 3 2 same 1; vbn; relu; dense 4 1"},
           DType::kFloat32, 8, 400, 6);
  PlaySame({"input uint8 30 17 1; conv 70 5 7 2 valid 1; bias; relu; conv 2 13 6 1 valid 1"}, DType::kFloat32, 5, 200,
           7);
  // Sums of the dense layer are kept at several of its 6,240 inputs.
  PlaySame({"input uint8 30 26 3; conv 8 3 3 1 same 1; bias; relu; dense 21 1; bias; relu; dense 5 1"}, DType::kFloat32,
           3, 300, 8);
}

TEST(LargeModelIsTheSame) {
  PlaySame({kLargeModel}, DType::kInt8, 3, 12, 8);
  PlaySame({kLargeModel}, DType::kFloat32, 3, 8, 9);
}

TEST(SlotsOfFeedForwardNetworksAreChecked) {
  const auto population = Make("cpu", {"input uint8 4; dense 2 1"}, 3, DType::kFloat32, 1);
  population->Init({0, 1}, {0, 0}, {1, 2});
  const std::vector<uint8_t> observations(8);
  std::vector<float> out(4);
  const auto forward = [&](const std::vector<int64_t>& states) {
    population->Forward({0, 1}, observations.data(), out.data(), states);
  };
  CHECK_THROWS(forward({0}), "there are 1 states, expected 2, one for each row");
  CHECK_THROWS(forward({0, 3}), "state 3");
  CHECK_THROWS(forward({1, 1}), "state 1 is given twice, expected different states");
  forward({2, 0});
}
