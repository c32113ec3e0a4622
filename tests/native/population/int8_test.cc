// Integer networks: rounding rules compared with double arithmetic, vector code compared with the rules, the CPU
// backend bit-identical to the reference, rows independent of how they are filled, and every error.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/noise.h"
#include "core/philox.h"
#include "native/check.h"
#include "networks/int8/quantize.h"
#include "networks/int8/rules.h"
#include "population/population.h"

using namespace neuroevo;

namespace {

const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";

// Int8 population with short versions of its calls.
struct Rows {
  std::unique_ptr<Population> population;

  Rows(const std::string& backend, const std::vector<std::string>& texts, int64_t rows, int64_t float_rows = -1,
       int threads = 2) {
    std::vector<Network> networks;
    for (const std::string& text : texts) networks.push_back(Network::Parse(text));
    population =
        Population::Make(backend, networks, rows, std::make_shared<ThreadPool>(threads), DType::kInt8, float_rows);
  }
  int64_t D(int network = 0) const { return population->networks()[network].dimension(); }
  void Init(const std::vector<int64_t>& rows, const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds) {
    population->Init(rows, network, seeds);
  }
  void Assign(const std::vector<int64_t>& rows, const std::vector<int32_t>& network, const std::vector<float>& thetas) {
    population->Assign(rows, network, thetas.data(), static_cast<int64_t>(thetas.size() / rows.size()));
  }
  std::vector<float> Read(int64_t row, int network = 0) {
    std::vector<float> theta(D(network));
    population->Read({row}, theta.data(), D(network));
    return theta;
  }
  void Perturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src, const std::vector<uint64_t>& seeds,
               const std::vector<float>& scale, const std::vector<int64_t>& spreads = {}) {
    population->Perturb(dst, src, seeds, scale, spreads);
  }
  std::vector<float> Forward(const std::vector<int64_t>& rows, const std::vector<uint8_t>& observations) {
    std::vector<float> out(rows.size() * population->networks()[0].output_size());
    population->Forward(rows, observations.data(), out.data());
    return out;
  }
};

uint64_t Hash(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (float value : values) hash = (hash ^ ToBits(value)) * 0x100000001b3u;
  return hash;
}

// Returns observations of the slots, partly zero.
std::vector<uint8_t> Observations(const Network& network, size_t slots, uint64_t seed) {
  std::vector<uint8_t> values(slots * network.input_size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<uint8_t>(std::min(255.0f, std::max(0.0f, Noise(seed, i)) * 80));
  }
  return values;
}

void CheckSame(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK_EQ(ToBits(a[i]), ToBits(b[i]));
}

// Floats of all kinds: every exponent, both signs, ties, NaN and infinity.
std::vector<float> AllKinds(uint64_t seed, int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    const Philox words = PhiloxWords(seed, i);
    values.push_back(
        FromBits(i % 4 == 0 ? words.word[0] : (words.word[0] & 0x80ffffff) | (words.word[1] % 64 + 96) << 23));
    if (i % 8 == 1) values.back() = (static_cast<int>(words.word[2] % 512) - 256) * 0.5f;
  }
  return values;
}

// Returns round(value * factor * 2^exponent) in double arithmetic, rounding to nearest with halves to even.
int32_t RoundScaledInDouble(float value, int factor, int exponent, double limit) {
  if (value != value) return 0;
  return static_cast<int32_t>(
      std::min(limit, std::max(-limit, std::nearbyint(std::ldexp(static_cast<double>(value) * factor, exponent)))));
}

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST(RoundingIsToNearestHalvesToEven) {
  CHECK_EQ(int8::RoundShift(5, 0), 5);
  const int rounded[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4};  // i / 4
  for (int i = 0; i < 16; ++i) CHECK_EQ(int8::RoundShift(i, 2), rounded[i]);
  for (float value : AllKinds(1, 20000)) {
    for (int exponent : {-32, -9, 0, 1, 8, 32, 200, -200}) {
      CHECK_EQ(int8::RoundScaled(value, 1, exponent, 127), RoundScaledInDouble(value, 1, exponent, 127));
      CHECK_EQ(int8::QuantizedBias(value, exponent), RoundScaledInDouble(value, 255, exponent, 1 << 30));
    }
  }
  CHECK_EQ(int8::RoundScaled(kInfinity, 1, -32, 127), 127);
  CHECK_EQ(int8::RoundScaled(-kInfinity, 255, 0, 1 << 30), -(1 << 30));
  CHECK_EQ(int8::RoundScaled(kNan, 1, 0, 127), 0);
}

TEST(TheExponentIsTheLargestThatKeepsWeightsInRange) {
  for (float value : AllKinds(2, 20000)) {
    const float largest = std::fabs(value);
    const int k = int8::WeightExponent(int8::AbsoluteBits(value));
    CHECK(k >= -32 && k <= 32);
    if (largest != largest || largest == 0) {
      CHECK_EQ(k, 0);
      continue;
    }
    const auto rounded = [&](int exponent) { return std::nearbyint(std::ldexp(double(largest), exponent)); };
    if (k > -32) CHECK(rounded(k) <= 127);
    if (k < 32) CHECK(rounded(k + 1) > 127);
  }
  CHECK_EQ(int8::WeightExponent(int8::AbsoluteBits(127.0f)), 0);
  CHECK_EQ(int8::WeightExponent(int8::AbsoluteBits(127.499f)), 0);
  CHECK_EQ(int8::WeightExponent(int8::AbsoluteBits(127.5f)), -1);  // would round to 128
}

TEST(TheShiftIsTheSmallestThatMakesBytes) {
  for (int32_t largest : {0, 1, 254, 255, 256, 510, 511, 512, 65407, 65408, 1 << 30, 2147483647}) {
    const int shift = int8::ActivationShift(largest);
    CHECK(std::nearbyint(std::ldexp(largest, -shift)) <= 255);
    if (shift > 0) CHECK(std::nearbyint(std::ldexp(largest, 1 - shift)) > 255);
    CHECK_EQ(int8::Activation(largest, shift), std::nearbyint(std::ldexp(largest, -shift)));
  }
  CHECK_EQ(int8::Activation(-7, 0), 0);
  CHECK_EQ(int8::ActivationExponent(0, 9, 0), 0);
  CHECK_EQ(int8::ActivationExponent(300, 9, 1), 8);
}

TEST(OutputsKeepTheirOrder) {
  CHECK_EQ(int8::Output(255 * 3, 1), 1.5f);
  CHECK_EQ(int8::Output(-255, -4), -16.0f);
  for (int32_t sum : {1, 1000, 255 << 8, (255 << 15) + 77, (255 << 16) - 1}) {
    CHECK(int8::Output(sum, 5) > int8::Output(sum - 1, 5));
    CHECK(int8::Output(-sum, 5) < int8::Output(1 - sum, 5));
  }
}

TEST(VectorsQuantizeByTheRules) {
  const std::vector<float> weights = AllKinds(3, 5003);
  for (int64_t n : {0, 1, 15, 16, 17, 5003}) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, int8::AbsoluteBits(weights[i]));
    CHECK_EQ(LargestBits(weights.data(), n), largest);
    for (int exponent : {-32, -7, 0, 11, 32}) {
      std::vector<int8_t> bytes(n + 1, 77);
      Quantize(weights.data(), n, exponent, bytes.data());
      for (int64_t i = 0; i < n; ++i) CHECK_EQ(bytes[i], int8::QuantizedWeight(weights[i], exponent));
      CHECK_EQ(bytes[n], 77);
    }
  }
}

TEST(ANetworkByHand) {
  for (const char* backend : {"cpu", "reference"}) {
    Rows rows(backend, {"input uint8 2; dense 2 1; bias; relu; dense 1 1; bias"}, 1);
    // k = 6 (largest 1.5): weights 96, -32, 64, 0; biases 0.25 and -1 in units of 2^-6 / 255: 4080, -16320.
    // k = 7 (largest 0.75): weights 96, 64; bias 0.5.
    rows.Assign({0}, {0}, {1.5f, -0.5f, 1.0f, 0.0f, 0.25f, -1.0f, 0.75f, 0.5f, 0.5f});
    // Sums: 100 * 96 + 50 * 64 + 4080 = 16880 and below 0: shift 7 (131.875), activation 132, e = 6 - 7 = -1.
    // Output: 132 * 96 + 0.5 * 255 * 2^6 = 12672 + 8160 in units of 2^-6 / 255.
    CHECK_EQ(rows.Forward({0}, {100, 50})[0], static_cast<float>(20832.0 / 255 / 64));
  }
}

TEST(CpuIsTheReferenceBitByBit) {
  const std::vector<std::string> texts = {
      kLargeModel,
      "input uint8 1; dense 1 1",
      "input uint8 7; dense 65 1; relu; dense 3 1; bias; relu",
      "input uint8 300; dense 129 1; bias; relu; dense 64 1; relu; dense 2 1; bias",
      "input uint8 9 7 3; conv 5 3 2 2 same 1.0; bias; relu; conv 7 2 4 1 valid 1.0; relu; dense 3 1.0",
      "input uint8 5 5 1; conv 1 5 5 7 same 1.0; bias",
      "input uint8 30 31 2; conv 16 3 3 1 same 1; bias; relu; conv 40 5 1 3 valid 1; bias; relu; conv 70 1 1 1 same 1; "
      "relu",
      "input uint8 6 6 5; conv 33 3 3 2 same 1; relu; dense 8 1; bias; relu; dense 4 1; bias",
  };
  for (const std::string& text : texts) {
    Rows cpu("cpu", {text}, 4), reference("reference", {text}, 4);
    for (Rows* rows : {&cpu, &reference}) {
      rows->Init({0, 1, 2}, {0, 0, 0}, {1, 2, 3});
      rows->Perturb({0, 3, 2}, {0, 0, 2}, {10, 11, 12}, {0.1f, 0.1f, 0.05f});  // biases are no longer zero
    }
    // Row 0 has 9 slots, row 3 four, rows 1 and 2 one each, in mixed order.
    const std::vector<int64_t> slots = {0, 3, 0, 1, 0, 0, 3, 0, 0, 0, 2, 0, 3, 0, 3};
    const auto observations = Observations(cpu.population->networks()[0], slots.size(), 99);
    const std::vector<float> out = cpu.Forward(slots, observations);
    CHECK(std::any_of(out.begin(), out.end(), [](float x) { return x != 0; }));
    CheckSame(out, reference.Forward(slots, observations));
    // Single slots, with one thread.
    Rows alone("cpu", {text}, 1, 0, 1);
    alone.Init({0}, {0}, {1});
    alone.Perturb({0}, {0}, {10}, {0.1f});
    const size_t bytes = observations.size() / slots.size(), outputs = out.size() / slots.size();
    for (size_t k : {size_t{0}, size_t{2}, slots.size() - 2}) {
      if (slots[k] != 0) continue;
      const std::vector<uint8_t> one(observations.begin() + k * bytes, observations.begin() + (k + 1) * bytes);
      CheckSame(alone.Forward({0}, one), {out.begin() + k * outputs, out.begin() + (k + 1) * outputs});
    }
  }
}

TEST(TheSameOnEveryMachine) {
  Rows rows("cpu", {kLargeModel}, 2, 1);
  rows.Init({0}, {0}, {1});
  rows.Perturb({1}, {0}, {2}, {0.05f});
  const auto observations = Observations(rows.population->networks()[0], 2, 3);
  CHECK_EQ(Hash(rows.Forward({1, 0}, observations)), 5672612048452550010u);
}

TEST(AnyWeightsAndObservations) {
  const std::string text =
      "input uint8 8 8 2; conv 6 3 3 2 same 1; bias; relu; dense 20 1; bias; relu; dense 5 1; bias";
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Rows cpu("cpu", {text}, 1), reference("reference", {text}, 1);
    std::vector<float> theta = AllKinds(seed, cpu.D());
    if (seed % 4 == 1) std::fill(theta.begin(), theta.end(), 0.0f);
    if (seed % 4 == 2) {
      for (float& weight : theta) weight = std::fmod(weight, 1.0f);  // NaN of infinities
    }
    if (seed % 4 == 3) {
      for (size_t i = 0; i < theta.size(); ++i) theta[i] = i % 2 == 0 ? 1e20f : 1e-30f;
    }
    auto observations = Observations(cpu.population->networks()[0], 3, seed);
    std::fill(observations.begin(), observations.begin() + 128, 0);
    std::fill(observations.begin() + 128, observations.begin() + 256, 255);
    cpu.Assign({0}, {0}, theta);
    reference.Assign({0}, {0}, theta);
    const std::vector<float> out = cpu.Forward({0, 0, 0}, observations);
    CheckSame(out, reference.Forward({0, 0, 0}, observations));
    for (float value : out) CHECK(value == value);
  }
}

TEST(NoSumOfTwoProductsSaturates) {  // unlike with an instruction for pairs of bytes: 2 * 255 * 127 > 2^15
  const std::string text = "input uint8 9 9 3; conv 40 4 4 1 same 1; relu; dense 70 1";
  Rows cpu("cpu", {text}, 1), reference("reference", {text}, 1);
  const std::vector<uint8_t> observation(9 * 9 * 3, 255);
  for (const float largest : {127.0f / 64, -127.0f / 64}) {
    std::vector<float> theta(cpu.D(), largest);
    for (size_t i = 0; i < theta.size(); i += 40) theta[i] = -largest;  // all weights of one of the 40 filters
    for (Rows* rows : {&cpu, &reference}) rows->Assign({0}, {0}, theta);
    const std::vector<float> out = cpu.Forward({0}, observation);
    CHECK(out[1] != 0);
    CheckSame(out, reference.Forward({0}, observation));
    // The same from the changes of a slot, which are up to 255 in either direction.
    std::vector<float> from_changes(out.size());
    for (const uint8_t value : {255, 0, 255, 128, 255}) {
      const std::vector<uint8_t> screen(observation.size(), value);
      cpu.population->Forward({0}, screen.data(), from_changes.data(), {0});
      CheckSame(from_changes, reference.Forward({0}, screen));
    }
  }
}

TEST(SumsStayInRangeAtTheLargestFanIn) {
  const std::string text = "input uint8 33155; dense 1 1; bias";
  Rows cpu("cpu", {text}, 2), reference("reference", {text}, 2);
  std::vector<float> theta(33156, 1.0f);  // k = 6, so that weights of 127/64 are the largest bytes
  std::fill(theta.begin(), theta.end() - 1, 127.0f / 64);
  theta.back() = 1e30f;
  const std::vector<uint8_t> observation(33155, 255);
  for (Rows* rows : {&cpu, &reference}) {
    rows->Assign({0}, {0}, theta);
    const double largest = 33155.0 * 255 * 127 + (1 << 30);
    CHECK_EQ(rows->Forward({0}, observation)[0], static_cast<float>(largest / 255 / 64));
  }
}

TEST(ARowIsTheSameWhicheverWayItIsFilled) {
  const std::string text =
      "input uint8 12 12 2; conv 8 3 3 2 same 1; bias; relu; dense 70 1; bias; relu; dense 3 0.1; bias";
  Rows rows("cpu", {text}, 8, 3);
  const auto observation = Observations(rows.population->networks()[0], 1, 5);
  rows.Init({0, 4}, {0, 0}, {7, 7});
  CheckSame(rows.Forward({0}, observation), rows.Forward({4}, observation));
  rows.Perturb({1, 1, 5, 5, 4, 4}, {0, 1, 0, 5, 4, 4}, {21, 22, 21, 22, 21, 22}, {0.1f, 0.2f, 0.1f, 0.2f, 0.1f, 0.2f});
  const std::vector<float> expected = rows.Forward({1}, observation);
  CHECK(ToBits(expected[0]) != ToBits(rows.Forward({0}, observation)[0]));
  CheckSame(rows.Forward({5}, observation), expected);
  CheckSame(rows.Forward({4}, observation), expected);
  std::vector<float> thetas = rows.Read(1);
  thetas.insert(thetas.end(), thetas.begin(), thetas.end());
  rows.Assign({6, 2}, {0, 0}, thetas);
  CheckSame(rows.Forward({6}, observation), expected);
  CheckSame(rows.Forward({2}, observation), expected);
  CheckSame(rows.Read(2), rows.Read(1));
  // From one row without theta to another within a call, and back to a row with theta.
  rows.Init({3}, {0}, {7});
  rows.Perturb({3, 7, 0}, {3, 3, 7}, {21, 22, 1}, {0.1f, 0.2f, 0.0f});
  CheckSame(rows.Forward({7}, observation), expected);
  CheckSame(rows.Read(0), rows.Read(1));
}

TEST(SpreadsScaleTheNoiseOfRowsWithAndWithoutTheta) {
  const std::string text = "input uint8 12 12 2; conv 8 3 3 2 same 1; bias; relu; dense 70 1; bias; relu; dense 3 1";
  for (const std::string backend : {"cpu", "reference"}) {
    Rows rows(backend, {text}, 6, 4);
    const auto observation = Observations(rows.population->networks()[0], 1, 5);
    rows.Init({0, 2}, {0, 0}, {7, 8});
    rows.Perturb({1, 4, 5, 5}, {0, 0, 0, 5}, {21, 21, 22, 21}, {3, 3, 0.1f, 3}, {2, 2, -1, 2});
    const std::vector<float> parent = rows.Read(0), spread = rows.Read(2);
    std::vector<float> child = parent, grandchild = parent;
    for (int64_t i = 0; i < rows.D(); ++i) {
      child[i] = std::fmaf(3 * spread[i], Noise(21, i), parent[i]);
      grandchild[i] = std::fmaf(3 * spread[i], Noise(21, i), std::fmaf(0.1f, Noise(22, i), parent[i]));
    }
    CheckSame(rows.Read(1), child);
    CheckSame(rows.Forward({4}, observation), rows.Forward({1}, observation));
    rows.Assign({3}, {0}, grandchild);
    CheckSame(rows.Forward({5}, observation), rows.Forward({3}, observation));
    CHECK_THROWS(rows.Perturb({1}, {0}, {1}, {1.0f}, {4}), "row 4 keeps no float32 weights to be read or perturbed");
  }
}

TEST(WhatIsAssignedCanBePerturbedInPlace) {
  // Rows that keep no theta (from row 2 on) compared with rows that do, with networks of different sizes.
  const std::vector<std::string> texts = {
      "input uint8 6 6 4; conv 32 3 3 1 same 1; bias; relu; dense 4 1; bias",
      "input uint8 6 6 4; dense 100 1; bias; relu; dense 4 1",
  };
  Rows rows("cpu", texts, 8, 2);
  const auto observation = Observations(rows.population->networks()[0], 1, 5);
  const int64_t stride = std::max(rows.D(0), rows.D(1));
  for (int32_t network : {0, 1}) {
    std::vector<float> theta(stride, 99);  // the smaller network uses only a part
    for (int64_t i = 0; i < rows.D(network); ++i) theta[i] = static_cast<float>(i % 17 - 8) / 40;
    std::vector<float> twice = theta;
    twice.insert(twice.end(), theta.begin(), theta.end());
    rows.Assign({0, 2}, {network, network}, twice);
    CheckSame(rows.Forward({2}, observation), rows.Forward({0}, observation));
    std::fill(twice.begin(), twice.end(), 0.0f);  // the caller's memory is no longer read
    rows.Perturb({0, 0, 2, 2}, {0, 0, 2, 2}, {21, 22, 21, 22}, {0.1f, 0.2f, 0.1f, 0.2f});
    const auto expected = rows.Forward({0}, observation);
    CheckSame(rows.Forward({2}, observation), expected);
    CHECK_THROWS(rows.Perturb({2}, {2}, {1}, {1.0f}), "row 2 keeps no float32 weights");
    // The same, together with a row that Init filled.
    rows.Assign({3}, {network}, theta);
    rows.Init({5}, {1 - network}, {7});
    rows.Perturb({3, 5, 4, 1}, {3, 5, 3, 4}, {21, 9, 22, 1}, {0.1f, 0.5f, 0.2f, 0.0f});
    CheckSame(rows.Forward({4}, observation), expected);
    CheckSame(rows.Forward({1}, observation), expected);
    CheckSame(rows.Read(1, network), rows.Read(0, network));
    // The last fill takes effect.
    rows.Assign({6, 7}, {network, network}, twice);
    rows.Init({6}, {network}, {7});
    rows.Init({1}, {network}, {7});
    rows.Perturb({6, 1}, {6, 1}, {3, 3}, {0.3f, 0.3f});
    CheckSame(rows.Forward({6}, observation), rows.Forward({1}, observation));
    rows.Init({7}, {1 - network}, {8});
    rows.Assign({7}, {network}, theta);
    rows.Perturb({7, 7}, {7, 7}, {21, 22}, {0.1f, 0.2f});
    CheckSame(rows.Forward({7}, observation), expected);
  }
}

TEST(ManyRowsAreFilledWithFewScratchRows) {
  const std::string text = "input uint8 40; dense 1000 1; relu; dense 2 1";
  Rows rows("cpu", {text}, 201, 1, 3), one("reference", {text}, 1);
  rows.Init({0}, {0}, {1});
  std::vector<int64_t> dst, src(200, 0);
  std::vector<uint64_t> seeds;
  for (int64_t i = 1; i <= 200; ++i) {
    dst.push_back(i);
    seeds.push_back(i % 10);
  }
  rows.Perturb(dst, src, seeds, std::vector<float>(200, 0.3f));
  const auto observation = Observations(rows.population->networks()[0], 1, 5);
  for (int64_t row : {1, 57, 200}) {
    one.Init({0}, {0}, {1});
    one.Perturb({0}, {0}, {static_cast<uint64_t>(row % 10)}, {0.3f});
    CheckSame(rows.Forward({row}, observation), one.Forward({0}, observation));
  }
}

TEST(NetworksOfDifferentSizesInOneCall) {
  const std::vector<std::string> texts = {
      "input uint8 6 6 4; conv 32 3 3 1 same 1; bias; relu; dense 4 1; bias",
      "input uint8 6 6 4; dense 100 1; bias; relu; dense 4 1",
  };
  Rows cpu("cpu", texts, 5, 1), reference("reference", texts, 5, 5);
  for (Rows* rows : {&cpu, &reference}) {
    rows->Init({0, 1, 2}, {1, 0, 1}, {4, 5, 6});
    rows->Perturb({3, 0}, {0, 0}, {8, 9}, {0.5f, 0.5f});
    rows->Init({0, 4}, {0, 1}, {10, 11});  // a row changes its network
  }
  const std::vector<int64_t> slots = {4, 0, 1, 3, 2, 0, 0, 0, 3};
  const auto observations = Observations(cpu.population->networks()[0], slots.size(), 3);
  CheckSame(cpu.Forward(slots, observations), reference.Forward(slots, observations));
}

TEST(WhatKeepsNoThetaSaysSo) {
  Rows rows("cpu", {"input uint8 4; dense 3 1; bias"}, 4, 2);
  rows.Init({0, 1, 2, 3}, {0, 0, 0, 0}, {1, 2, 3, 4});
  CHECK_THROWS(rows.Read(2), "row 2 keeps no float32 weights to be read or perturbed: only rows [0, 2) do");
  CHECK_THROWS(rows.Perturb({3}, {2}, {1}, {1.0f}), "row 2 keeps no float32 weights");
  rows.Perturb({2}, {2}, {1}, {1.0f});
  CHECK_THROWS(rows.Perturb({2}, {2}, {1}, {1.0f}), "row 2 keeps no float32 weights");
  const std::vector<uint8_t> observation = {1, 2, 3, 4};
  const auto before = rows.Forward({2}, observation);
  CHECK_THROWS(rows.Perturb({3, 1}, {0, 2}, {1, 1}, {1.0f, 1.0f}), "row 2 keeps no float32 weights");
  CheckSame(rows.Forward({2}, observation), before);
  rows.Init({2}, {0}, {9});
  rows.Perturb({2}, {2}, {1}, {1.0f});
  CHECK_THROWS(Rows("cpu", {"input uint8 4; dense 3 1"}, 4, 5), "float_rows is 5, expected -1 or a number in [0, 4]");
  // Rows that keep no float32 weights need a quarter of the memory.
  CHECK_THROWS(Rows("cpu", {"input uint8 999; dense 999 1"}, 1 << 20, 0), "1048576 rows of networks need 10");
  CHECK_THROWS(Rows("cpu", {"input uint8 999; dense 999 1"}, 1 << 20), "1048576 rows of networks need 52");
}

TEST(RefusedNetworks) {
  const auto refused = [](const std::string& text) { Rows("cpu", {"input uint8 4; dense 3 1", text}, 1); };
  CHECK_THROWS(Rows("cpu", {"input float32 4; dense 3 1"}, 1),
               "network 0 cannot be evaluated as int8: layer 0 'input' is float32, expected uint8");
  CHECK_THROWS(refused("input uint8 4; dense 5 1; tanh; dense 3 1"),
               "network 1 cannot be evaluated as int8: layer 2 'tanh' is not supported, expected relu");
  CHECK_THROWS(refused("input uint8 4; dense 5 1; bias; dense 3 1"),
               "layer 3 'dense' needs a relu between it and the layer before it");
  CHECK_THROWS(refused("input uint8 4; bias; dense 3 1"), "layer 1 'bias' does not follow a conv or dense layer");
  CHECK_THROWS(refused("input uint8 4; dense 3 1; bias; bias"), "layer 3 'bias' does not follow");
  CHECK_THROWS(refused("input uint8 4; dense 3 1; relu; bias"), "layer 3 'bias' does not follow");
  CHECK_THROWS(refused("input uint8 4; relu; dense 3 1"), "layer 1 'relu' does not follow");
  CHECK_THROWS(refused("input uint8 4; dense 5 1; silu; dense 3 1"), "layer 2 'silu' is not supported, expected relu");
  CHECK_THROWS(refused("input uint8 4; lstm 5 1; dense 3 1"),
               "layer 1 'lstm' is not supported, expected a network without");
  CHECK_THROWS(refused("input uint8 4; dense 5 1; layer_norm; dense 3 1"), "layer 2 'layer_norm' is not supported");
  std::string deep = "input uint8 4";
  for (int i = 0; i < 16; ++i) deep += "; dense 3 1; relu";
  refused(deep);
  CHECK_THROWS(refused(deep + "; dense 3 1"), "layer 33 'dense' exceeds the limit of 16");
  CHECK_THROWS(Rows("cpu", {"input uint8 33156; dense 3 1"}, 1),
               "layer 1 'dense' sums 33156 products, expected at most 33155 so that they fit 32 bits");
}
