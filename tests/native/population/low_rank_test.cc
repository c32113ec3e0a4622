// Members of low rank: the CPU backend is bit-identical to the reference, and both match weights computed by hand from
// the noise; other slots in a call, threads, continuing slots, vbn, lstm; and every error.
#include "networks/low_rank.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/noise.h"
#include "native/check.h"
#include "population/population.h"

using namespace neuroevo;

namespace {

const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";
const char kSmall[] = "input float32 7; dense 5 1; bias; tanh; dense 3 1";

constexpr int64_t kCenters = 3, kRows = 11;  // rows [3, 11) are members

// Member row 3 + i has center i % 3, seed 100 + i and scale 0.1 or -0.1; the last member has scale 0.
int64_t CenterOf(int64_t row) { return (row - kCenters) % kCenters; }
float ScaleOf(int64_t row) { return row == kRows - 1 ? 0.0f : row % 2 == 0 ? 0.1f : -0.1f; }

std::unique_ptr<Population> Make(const std::string& backend, const std::vector<std::string>& texts, int rank,
                                 int threads = 2, int64_t rows = kRows, int64_t float_rows = kCenters) {
  std::vector<Network> networks;
  for (const std::string& text : texts) networks.push_back(Network::Parse(text));
  return Population::Make(backend, networks, rows, std::make_shared<ThreadPool>(threads), DType::kFloat32, float_rows,
                          rank);
}

void Fill(Population* population) {
  const int64_t networks = static_cast<int64_t>(population->networks().size());
  for (int64_t row = 0; row < kCenters; ++row) {
    population->Init({row}, {static_cast<int32_t>(row % networks)}, {static_cast<uint64_t>(row)});
    population->Perturb({row}, {row}, {7}, {0.1f});  // biases are no longer zero
  }
  for (int64_t row = kCenters; row < kRows; ++row) {
    population->Perturb({row}, {CenterOf(row)}, {100 + static_cast<uint64_t>(row)}, {ScaleOf(row)});
  }
}

template <class T>
std::vector<T> Observations(const Network& network, int64_t slots, uint64_t seed) {
  std::vector<T> values(slots * network.input_size());
  for (size_t i = 0; i < values.size(); ++i) {
    const float z = Noise(seed, i);
    values[i] = std::is_same_v<T, float> ? static_cast<T>(i % 3 == 0 ? 0 : z)
                                         : static_cast<T>(z < 0 ? 0 : std::min(255.0f, z * 80));
  }
  return values;
}

template <class T>
std::vector<float> Forward(Population* population, const std::vector<int64_t>& rows, const std::vector<T>& observations,
                           const std::vector<int64_t>& states = {}) {
  std::vector<float> out(rows.size() * population->networks()[0].output_size());
  population->Forward(rows, observations.data(), out.data(), states);
  return out;
}

std::vector<float> Read(Population* population, int64_t row) {
  std::vector<float> theta(population->networks()[0].dimension());
  population->Read({row}, theta.data(), static_cast<int64_t>(theta.size()));
  return theta;
}

void CheckSame(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK_EQ(ToBits(a[i]), ToBits(b[i]));
}

// A call with rows of all kinds, each several times, and more slots of a center's members than fit into one task.
const std::vector<int64_t> kSlots = {3, 0, 6, 9, 3, 1, 4, 10, 5, 2, 6, 9, 3, 0, 8, 7, 3, 6, 9, 3, 6, 9};

template <class T>
void CheckBackendsAgree(const std::vector<std::string>& texts, int rank) {
  const auto cpu = Make("cpu", texts, rank), reference = Make("reference", texts, rank, 1);
  const auto observations = Observations<T>(cpu->networks()[0], static_cast<int64_t>(kSlots.size()), 99);
  const auto batch = Observations<T>(cpu->networks()[0], 5, 3);
  std::vector<std::vector<float>> outs, statistics;
  for (Population* population : {cpu.get(), reference.get()}) {
    Fill(population);
    population->SetReference(batch.data(), 5);
    population->Prepare(kSlots);
    std::vector<int64_t> states(kRows);
    if (population->recurrent()) {
      for (int64_t s = 0; s < kRows; ++s) states[s] = s;
      population->ClearStates(states);
      for (int step = 0; step < 3; ++step) {
        const std::vector<int64_t> rows(kSlots.begin(), kSlots.begin() + kRows);
        outs.push_back(Forward(population, rows, observations, states));
      }
    } else {
      outs.push_back(Forward(population, kSlots, observations));
    }
    for (int64_t row = 0; row < kRows; ++row) statistics.push_back(population->Statistics(row));
  }
  for (size_t i = 0; i < outs.size() / 2; ++i) CheckSame(outs[i], outs[i + outs.size() / 2]);
  for (int64_t row = 0; row < kRows; ++row) CheckSame(statistics[row], statistics[row + kRows]);
  if (texts.size() == 1) {
    for (int64_t row = 0; row < kRows; ++row) CheckSame(Read(cpu.get(), row), Read(reference.get(), row));
  }
  CHECK(std::any_of(outs[0].begin(), outs[0].end(), [](float x) { return x != 0; }));
}

// Returns the weights of a member by definition, in double.
std::vector<double> MemberByHand(const Network& network, const std::vector<float>& center, uint64_t seed, float scale,
                                 int rank) {
  std::vector<double> theta(center.begin(), center.end());
  int64_t next = 0;
  const auto value = [&](int64_t place) { return double{Noise(seed, next + place)}; };
  for (const Layer& layer : network.layers()) {
    if (layer.kind == Layer::Kind::kConv || layer.kind == Layer::Kind::kDense) {
      const int64_t n = layer.out[2], m = layer.weights / n;
      for (int64_t i = 0; i < layer.weights; ++i) {
        double sum = 0;
        for (int q = 0; q < rank; ++q) sum += value(q * m + i / n) * value(rank * m + q * n + i % n);
        theta[layer.offset + i] += scale * sum / std::sqrt(static_cast<double>(rank));
      }
      next += rank * (m + n);
    } else {
      for (int64_t i = 0; i < layer.weights; ++i) theta[layer.offset + i] += scale * value(i);
      next += layer.weights;
    }
  }
  CHECK_EQ(next, network.factors(rank));
  return theta;
}

}  // namespace

TEST(CpuIsTheReferenceBitByBit) {
  const std::vector<std::string> float_networks = {
      "input float32 1; dense 1 1",
      kSmall,
      "input float32 376; dense 256 1; bias; tanh; dense 64 1; bias; relu; dense 17 1; bias; tanh",
      "input float32 33; bias; relu; dense 31 1; tanh; bias; relu; dense 47 1; vbn; relu; bias; dense 129 1",
      "input float32 7 10 3; conv 5 3 2 2 same 1; bias; tanh; conv 19 2 3 1 valid 1; vbn; bias; relu; dense 9 1; bias",
      "input float32 13 29 2; conv 40 5 3 1 same 1; bias; relu; conv 3 3 5 2 valid 1; vbn; relu; bias; dense 4 1",
      "input float32 7 6 3; conv 21 3 3 1 same 1; bias; gelu; max_pool 2 2 2 valid; layer_norm; conv 9 2 2 1 valid 1; "
      "silu; avg_pool 2 1 3 same; leaky_relu 0.1; dense 3 1",
      "input float32 9 8 16; conv 70 1 3 1 same 1; bias; relu; conv 33 3 3 1 valid 1; bias; dense 3 1",
      "input float32 9; dense 12 1; bias; relu; lstm 7 1; dense 4 1; bias",
  };
  for (const std::string& text : float_networks) {
    for (int rank : {1, 2, 5}) CheckBackendsAgree<float>({text}, rank);
  }
  CheckBackendsAgree<float>({kSmall, "input float32 7; dense 20 1; relu; dense 3 1; bias"}, 3);
  CheckBackendsAgree<uint8_t>({"input uint8 19 23 4; conv 12 8 8 4 same 1; bias; relu; dense 64 1; relu; dense 6 1"},
                              1);
  CheckBackendsAgree<uint8_t>({kLargeModel}, 1);
}

TEST(ReadGivesTheWeightsOfTheDefinition) {
  for (int rank : {1, 3, 64}) {
    const auto population =
        Make("cpu", {"input float32 6 5 2; conv 7 3 3 2 same 1; bias; relu; dense 3 1; bias"}, rank);
    Fill(population.get());
    for (int64_t row = kCenters; row < kRows; ++row) {
      const std::vector<float> theta = Read(population.get(), row);
      const std::vector<double> expected =
          MemberByHand(population->networks()[0], Read(population.get(), CenterOf(row)), 100 + row, ScaleOf(row), rank);
      for (size_t i = 0; i < theta.size(); ++i) CHECK(std::fabs(theta[i] - expected[i]) < 1e-6);
    }
  }
}

// A rank-0 population with the members' weights as vectors gives nearly the same outputs.
TEST(ForwardIsThatOfTheWeights) {
  for (const std::string text :
       {"input float32 24 30 17; conv 64 3 3 1 same 1; bias; relu; conv 20 2 2 2 same 1; relu; dense 3 1", kSmall,
        "input float32 70; dense 33 1; bias; relu; lstm 9 1; dense 4 1; bias"}) {
    for (int rank : {1, 4}) {
      const auto members = Make("cpu", {text}, rank);
      const auto dense = Make("cpu", {text}, 0);
      Fill(members.get());
      for (int64_t row = 0; row < kRows; ++row) {
        const std::vector<float> theta = Read(members.get(), row);
        dense->Assign({row}, {0}, theta.data(), static_cast<int64_t>(theta.size()));
      }
      std::vector<int64_t> rows(kRows);
      for (int64_t row = 0; row < kRows; ++row) rows[row] = row;
      members->ClearStates(rows);
      dense->ClearStates(rows);
      const auto observations = Observations<float>(members->networks()[0], kRows, 8);
      const std::vector<float> a = Forward(members.get(), rows, observations, rows),
                               b = Forward(dense.get(), rows, observations, rows);
      for (size_t i = 0; i < a.size(); ++i) CHECK(std::fabs(a[i] - b[i]) < 2e-5 * (1 + std::fabs(b[i])));
    }
  }
}

TEST(TheSameBitsOnEveryMachineAndBuild) {
  const auto population =
      Make("cpu", {"input float32 9 10 3; conv 21 3 3 1 same 1; bias; relu; dense 37 1; bias; tanh; dense 5 1"}, 3);
  Fill(population.get());
  const auto observations = Observations<float>(population->networks()[0], static_cast<int64_t>(kSlots.size()), 4);
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](const std::vector<float>& values) {
    for (float value : values) hash = (hash ^ ToBits(value)) * 0x100000001b3u;
  };
  add(Forward(population.get(), kSlots, observations));
  add(Read(population.get(), 5));
  CHECK_EQ(hash, 0xd907f7bbdaeb4d96u);
}

TEST(WhoSharesTheCallAndThreadsChangeNothing) {
  const std::string text = "input float32 9 10 3; conv 12 3 3 1 same 1; bias; relu; dense 37 1; bias; relu; dense 5 1";
  std::vector<float> alone;
  for (int threads : {1, 2, 5}) {
    const auto population = Make("cpu", {text}, 2, threads);
    Fill(population.get());
    const int64_t size = population->networks()[0].input_size();
    const auto observations = Observations<float>(population->networks()[0], static_cast<int64_t>(kSlots.size()), 4);
    if (alone.empty()) {
      for (size_t s = 0; s < kSlots.size(); ++s) {
        const std::vector<float> one(observations.begin() + s * size, observations.begin() + (s + 1) * size);
        const std::vector<float> out = Forward(population.get(), {kSlots[s]}, one);
        alone.insert(alone.end(), out.begin(), out.end());
      }
    }
    CheckSame(Forward(population.get(), kSlots, observations), alone);
  }
}

// As many slots as fit into one task, and layers with whole blocks of units plus a remainder.
TEST(ManySlotsOfACenter) {
  const std::string text = "input float32 7 9 3; conv 20 3 3 1 same 1; bias; relu; dense 300 1; bias; relu; dense 5 1";
  const auto cpu = Make("cpu", {text}, 2, 1), reference = Make("reference", {text}, 2);
  for (Population* population : {cpu.get(), reference.get()}) Fill(population);
  for (int64_t slots : {17, 31, 32, 33, 70}) {
    for (bool same : {false, true}) {
      std::vector<int64_t> rows(slots, 1);
      for (int64_t s = 0; s < slots && !same; ++s) rows[s] = kCenters + (s % 2 == 0 ? 0 : 3);  // both of center 0
      const auto observations = Observations<float>(cpu->networks()[0], slots, static_cast<uint64_t>(slots));
      CheckSame(Forward(cpu.get(), rows, observations), Forward(reference.get(), rows, observations));
    }
  }
}

TEST(AMemberWithoutAScaleIsItsCenter) {
  for (const std::string backend : {"cpu", "reference"}) {
    const auto population = Make(backend, {kSmall}, 2);
    Fill(population.get());
    const auto observations = Observations<float>(population->networks()[0], 1, 8);
    const int64_t last = kRows - 1;
    CheckSame(Forward(population.get(), {last}, observations),
              Forward(population.get(), {CenterOf(last)}, observations));
    CheckSame(Read(population.get(), last), Read(population.get(), CenterOf(last)));
    CHECK(Read(population.get(), last - 1) != Read(population.get(), CenterOf(last - 1)));
  }
}

// Slots whose images change in a few places, with members that are refilled and move to other slots.
TEST(WhatIsKeptOfSlotsChangesNothing) {
  for (const std::string text :
       {"input uint8 24 21 4; conv 16 8 8 4 same 1; bias; relu; conv 20 4 4 2 same 1; vbn; bias; "
        "relu; conv 12 3 3 1 same 1; bias; relu; dense 40 1; bias; relu; dense 5 1; bias",
        "input uint8 9 11 3; conv 5 3 2 1 valid 1; tanh; conv 40 2 2 3 same 1; dense 4 1"}) {
    const auto cpu = Make("cpu", {text}, 2), reference = Make("reference", {text}, 2);
    const int64_t size = cpu->networks()[0].input_size(), slots = kRows;
    std::vector<uint8_t> screens = Observations<uint8_t>(cpu->networks()[0], slots, 5);
    for (Population* population : {cpu.get(), reference.get()}) {
      Fill(population);
      population->SetReference(screens.data(), slots);
    }
    std::vector<int64_t> states(slots), rows(slots);
    for (int64_t s = 0; s < slots; ++s) states[s] = s;
    for (uint64_t round = 0; round < 150; ++round) {
      const Philox words = PhiloxWords(17, round);
      const int64_t filled = kCenters + words.word[0] % (kRows - kCenters), slot = words.word[1] % slots;
      for (Population* population : {cpu.get(), reference.get()}) {
        if (round % 5 == 0) population->Perturb({filled}, {CenterOf(filled)}, {round}, {0.2f});
      }
      for (int64_t s = 0; s < slots; ++s) rows[s] = (s + (s == slot ? words.word[2] : 0)) % kRows;
      screens[slot * size + words.word[3] % size] ^= static_cast<uint8_t>(1 + words.word[2] % 255);
      std::vector<std::vector<float>> outs;
      for (Population* population : {cpu.get(), reference.get()}) {
        population->Prepare(rows);
        outs.push_back(Forward(population, rows, screens, population == cpu.get() ? states : std::vector<int64_t>()));
      }
      CheckSame(outs[0], outs[1]);
    }
  }
}

TEST(ErrorsNameTheRow) {
  for (const std::string backend : {"cpu", "reference"}) {
    const auto population = Make(backend, {kSmall}, 1);
    const std::vector<float> theta(population->networks()[0].dimension()), one(7);
    std::vector<float> out(theta.size());
    const auto perturb = [&](const std::vector<int64_t>& dst, const std::vector<int64_t>& src) {
      population->Perturb(dst, src, std::vector<uint64_t>(dst.size(), 1), std::vector<float>(dst.size(), 0.5f));
    };
    CHECK_THROWS(population->Init({3}, {0}, {1}),
                 "row 3 is a member, which holds no weights of its own: expected one of");
    CHECK_THROWS(population->Assign({10}, {0}, theta.data(), 100), "row 10 is a member");
    CHECK_THROWS(perturb({3}, {0}), "row 0 has no network yet");
    population->Init({0, 1}, {0, 0}, {1, 2});
    CHECK_THROWS(population->Forward({3}, one.data(), out.data()), "row 3 has no network yet");
    perturb({3, 4}, {0, 1});
    CHECK_THROWS(perturb({5}, {3}), "src row 3 is a member");
    CHECK_THROWS(perturb({1}, {3}), "src row 3 is a member");
    CHECK_THROWS(perturb({5, 1}, {0, 0}), "one of dst rows 5 and 1 is a member, expected only members or no members");
    CHECK_THROWS(perturb({5, 5}, {0, 0}), "member 5 is given twice");
    CHECK_THROWS(population->Perturb({6, 5}, {0, 0}, {1, 2}, {0.5f, 0.5f}, {-1, 1}),
                 "member 5 has spread row 1, expected -1: noise of low rank is not scaled weight by weight");
    CHECK_THROWS(population->Perturb({1}, {0}, {1}, {0.5f}, {3}), "spread row 3 is a member, which holds no weights");
    population->Forward({3, 4}, Observations<float>(population->networks()[0], 2, 1).data(), out.data());
    perturb({0}, {0});  // invalidates its members
    CHECK_THROWS(population->Forward({4, 3}, Observations<float>(population->networks()[0], 2, 1).data(), out.data()),
                 "row 3 is a member of row 0, which has been filled with other weights since");
    CHECK_THROWS(population->Read({3}, out.data(), 100), "row 3 is a member of row 0, which has been filled");
    CHECK_THROWS(population->Prepare({3}), "row 3 is a member of row 0");
    population->Forward({4}, one.data(), out.data());
    perturb({3}, {0});
    population->Forward({3}, one.data(), out.data());
  }
  CHECK_THROWS(Make("cpu", {kSmall}, -1), "rank is -1, expected 1 to 64");
  CHECK_THROWS(Make("cpu", {kSmall}, 65), "rank is 65, expected 1 to 64");
  CHECK_THROWS(Make("cpu", {kSmall}, 1, 1, 4, 0), "float_rows is 0, expected -1 or a number in [1, 4]");
  CHECK_THROWS(Make("cpu", {kSmall}, 1, 1, 4, 5), "float_rows is 5, expected -1 or a number in [1, 4]");
  CHECK_THROWS(Population::Make("cpu", {Network::Parse("input uint8 4; dense 3 1.0")}, 3,
                                std::make_shared<ThreadPool>(1), DType::kInt8, 1, 1),
               "rank is 1 with dtype int8, expected dtype float32");
}
