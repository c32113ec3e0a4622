// Virtual batch normalization: statistics computed by hand; the CPU backend is bit-identical to the reference for any
// number of threads and any other slots in the call; refilled rows; and every error.
#include "networks/vbn.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "core/noise.h"
#include "native/check.h"
#include "population/population.h"

using namespace neuroevo;

namespace {

const char kVirtualBn[] =
    "input uint8 84 84 4; conv 16 8 8 4 same 1.0; vbn; bias; relu; conv 32 4 4 2 same 1.0; vbn; bias; relu; "
    "dense 256 1.0; vbn; bias; relu; dense 18 1.0; bias";

// Population whose row r has network r % networks, with nonzero biases.
struct Rows {
  std::unique_ptr<Population> population;

  Rows(const std::string& backend, const std::vector<std::string>& texts, int64_t rows, int threads = 2) {
    std::vector<Network> networks;
    for (const std::string& text : texts) networks.push_back(Network::Parse(text));
    population = Population::Make(backend, networks, rows, std::make_shared<ThreadPool>(threads));
    for (int64_t row = 0; row < rows; ++row) Fill(row, static_cast<uint64_t>(row));
  }
  void Fill(int64_t row, uint64_t seed) {
    const int32_t network = static_cast<int32_t>(row % static_cast<int64_t>(population->networks().size()));
    population->Init({row}, {network}, {seed});
    population->Perturb({row}, {row}, {seed}, {0.1f});
  }
  template <class T>
  void SetReference(const std::vector<T>& observations) {
    population->SetReference(observations.data(), Count(observations));
  }
  void Prepare() {
    std::vector<int64_t> rows(population->rows());
    std::iota(rows.begin(), rows.end(), 0);
    population->Prepare(rows);
  }
  template <class T>
  std::vector<float> Forward(const std::vector<int64_t>& rows, const std::vector<T>& observations) {
    std::vector<float> out(rows.size() * population->networks()[0].output_size());
    population->Forward(rows, observations.data(), out.data());
    return out;
  }
  template <class T>
  int64_t Count(const std::vector<T>& observations) const {
    return static_cast<int64_t>(observations.size()) / population->networks()[0].input_size();
  }
};

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  if (!values.empty()) memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

template <class T>
std::vector<T> Observations(const std::string& text, int64_t count, uint64_t seed) {
  std::vector<T> values(count * Network::Parse(text).input_size());
  for (size_t i = 0; i < values.size(); ++i) {
    const float z = Noise(seed, i);
    values[i] = std::is_same_v<T, float> ? static_cast<T>(3 * z + 1) : static_cast<T>(std::fabs(z) * 80);
  }
  return values;
}

// Prints a hash of the results, which must be the same on every architecture.
template <class T>
void CheckBackendsAgree(const std::string& text, int64_t references) {
  const auto batch = Observations<T>(text, references, 5), seen = Observations<T>(text, 6, 6);
  std::vector<std::vector<float>> outs, statistics;
  for (const std::string backend : {"cpu", "reference"}) {
    Rows rows(backend, {text}, 3);
    rows.SetReference(batch);
    rows.Prepare();
    statistics.emplace_back();
    for (int64_t row = 0; row < 3; ++row) {
      const std::vector<float> own = rows.population->Statistics(row);
      statistics.back().insert(statistics.back().end(), own.begin(), own.end());
    }
    outs.push_back(rows.Forward({0, 2, 2, 1, 2, 0}, seen));
  }
  const Network network = Network::Parse(text);
  CHECK_EQ(statistics[0].size(), static_cast<size_t>(3 * (network.row_size() - network.dimension())));
  if (Bits(statistics[0]) != Bits(statistics[1])) check::Fail(__FILE__, __LINE__, "statistics of '" + text + "'");
  if (Bits(outs[0]) != Bits(outs[1])) check::Fail(__FILE__, __LINE__, "outputs of '" + text + "'");
  uint64_t hash = 0xcbf29ce484222325u;
  for (const auto& values : {statistics[0], outs[0]}) {
    for (float value : values) {
      CHECK(std::isfinite(value));
      hash = (hash ^ ToBits(value)) * 0x100000001b3u;
    }
  }
  std::printf("hash %016llx of '%s' with %d references\n", static_cast<unsigned long long>(hash), text.c_str(),
              static_cast<int>(references));
}

const std::vector<float> kTwoObservations = {1, 5, 3, 5};  // of [2]

}  // namespace

TEST(StatisticsByHand) {
  for (const std::string backend : {"cpu", "reference"}) {
    // Channel 0 holds 1 and 3; channel 1 is constant, with variance 0.
    Rows rows(backend, {"input float32 2; vbn; dense 2 1"}, 1);
    const std::vector<float> identity = {1, 0, 0, 1};
    rows.population->Assign({0}, {0}, identity.data(), 4);
    rows.SetReference(kTwoObservations);
    rows.Prepare();
    const float factor = static_cast<float>(1 / std::sqrt(1.001)), constant = static_cast<float>(1 / std::sqrt(0.001));
    CHECK_EQ(rows.population->Statistics(0), (std::vector<float>{2, 5, factor, constant}));
    CHECK_EQ(rows.Forward<float>({0}, {4, 5}), (std::vector<float>{2 * factor, 0}));
    CHECK_EQ(rows.Forward<float>({0}, {2, 6}), (std::vector<float>{0, constant}));

    // Positions are treated like observations: values of one channel at two positions.
    Rows positions(backend, {"input float32 2 1; vbn; dense 2 1"}, 1);
    positions.SetReference(kTwoObservations);
    positions.Prepare();
    const float mean = 14.0f / 4, variance = (2.5f * 2.5f + 0.5f * 0.5f + 2 * 1.5f * 1.5f) / 4;
    const float of_all = static_cast<float>(1 / std::sqrt(variance + 1e-3));
    CHECK_EQ(positions.population->Statistics(0), (std::vector<float>{mean, of_all}));

    // The second vbn normalizes the output of the first: mean 0 and a variance of 1 / 1.001.
    Rows twice(backend, {"input float32 2; vbn; vbn; dense 1 1"}, 1);
    twice.SetReference(kTwoObservations);
    twice.Prepare();
    const std::vector<float> both = twice.population->Statistics(0);
    CHECK_EQ(both.size(), size_t{8});
    CHECK_EQ(both[4], 0.0f);
    CHECK_EQ(both[6], static_cast<float>(1 / std::sqrt(double{factor} * factor + 1e-3)));
  }
}

TEST(CpuIsTheReferenceBitByBit) {
  for (const std::string text : {
           "input float32 7; vbn; dense 5 1; vbn; bias; relu; dense 3 1; bias",
           "input float32 376; vbn; dense 64 1; bias; tanh; dense 33 1; vbn; tanh; dense 17 1; bias; vbn",
           "input float32 4 6; vbn; tanh; dense 19 1; vbn; dense 2 1; vbn; tanh",
           "input float32 3 5 4; vbn; bias",
           "input float32 7 10 3; conv 5 3 2 2 same 1; vbn; bias; tanh; conv 19 2 3 1 valid 1; vbn; relu; dense 9 1",
           "input float32 9 9 1; relu; vbn; conv 17 2 2 3 same 1; bias; vbn; relu; conv 33 3 3 2 same 1; vbn; dense 1 "
           "1",
           "input float32 2 3 1; conv 70 5 7 1 same 1; tanh; vbn; vbn; conv 16 1 1 1 valid 1; vbn",
           "input float32 6 5 2; dense 8 1; bias; relu; dense 3 1",
       }) {
    for (int64_t references : {1, 2, 13}) CheckBackendsAgree<float>(text, references);
  }
  for (const std::string text : {"input uint8 50; dense 20 1; vbn; bias; relu; dense 4 1",
                                 "input uint8 9 11 2; vbn; conv 6 3 3 2 same 1; vbn; bias; relu; dense 5 1; vbn"}) {
    CheckBackendsAgree<uint8_t>(text, 20);
  }
  CheckBackendsAgree<uint8_t>(kVirtualBn, 3);
}

TEST(ThreadsAndGroupsChangeNothing) {
  const std::string text =
      "input float32 7 10 3; conv 5 3 2 2 same 1; vbn; relu; dense 40 1; vbn; bias; relu; dense 3 1";
  const auto batch = Observations<float>(text, 37, 1), seen = Observations<float>(text, 12, 2);
  std::vector<float> expected;
  for (int threads : {1, 2, 5, 64}) {
    Rows rows("cpu", {text}, 4, threads);
    rows.SetReference(batch);
    if (threads == 2) {
      for (int64_t row : {2, 0, 3, 1}) rows.population->Prepare({row});
    } else {
      rows.population->Prepare({0, 1, 2, 3, 3, 0});
    }
    std::vector<float> out = rows.Forward({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, seen);
    for (int64_t row = 0; row < 4; ++row) {
      const std::vector<float> own = rows.population->Statistics(row);
      out.insert(out.end(), own.begin(), own.end());
    }
    if (expected.empty()) expected = out;
    CHECK_EQ(Bits(out), Bits(expected));
  }
}

TEST(TwoNetworksOfWhichOneHasVbn) {
  const std::string with = "input float32 6; dense 4 1; vbn; relu; dense 3 1", without = "input float32 6; dense 3 1";
  const auto batch = Observations<float>(with, 9, 1), seen = Observations<float>(with, 4, 2);
  for (const std::string backend : {"cpu", "reference"}) {
    Rows both(backend, {with, without}, 4), alone(backend, {with}, 4);
    both.population->Prepare({1, 3});  // does nothing, also without a reference batch
    CHECK_THROWS(both.population->Prepare({1, 2}),
                 "row 2 has a network with vbn, but no reference batch is set: call SetReference first");
    for (Rows* rows : {&both, &alone}) rows->SetReference(batch);
    both.Prepare();
    alone.population->Prepare({0, 2});
    CHECK_EQ(both.population->Statistics(1).size(), size_t{0});
    CHECK_EQ(Bits(both.population->Statistics(2)), Bits(alone.population->Statistics(2)));
    const std::vector<float> out = both.Forward({2, 1, 0, 3}, seen);
    const std::vector<float> first = alone.Forward<float>({2}, {seen.begin(), seen.begin() + 6});
    CHECK_EQ(Bits({out.begin(), out.begin() + 3}), Bits(first));
    // A row that changes its network no longer needs statistics, and vice versa.
    both.population->Perturb({2, 3}, {1, 0}, {7, 8}, {1, 1});
    both.Forward<float>({2}, {seen.begin(), seen.begin() + 6});
    CHECK_THROWS(both.Forward<float>({3}, {seen.begin(), seen.begin() + 6}), "row 3 has a network with vbn");
  }
}

TEST(RowsFilledAnewAreToBePreparedAnew) {
  const std::string text = "input float32 4; dense 3 1; vbn; relu; dense 2 1";
  const auto batch = Observations<float>(text, 8, 1), seen = Observations<float>(text, 1, 2);
  for (const std::string backend : {"cpu", "reference"}) {
    Rows rows(backend, {text}, 4), fresh(backend, {text}, 4);
    for (Rows* each : {&rows, &fresh}) each->SetReference(batch);
    Population& p = *rows.population;
    const char* refused = "row 1 has a network with vbn and was not prepared since it was filled: call Prepare first";
    CHECK_THROWS(rows.Forward({1}, seen), refused);
    CHECK_THROWS(p.Statistics(1), refused);
    rows.Prepare();
    const std::vector<float> first = p.Statistics(1);
    rows.Forward({0, 1, 2, 3}, Observations<float>(text, 4, 3));
    const std::vector<float> theta(Network::Parse(text).dimension(), 0.5f);
    const std::vector<std::function<void()>> fills = {
        [&] { p.Init({1}, {0}, {77}); }, [&] { p.Assign({1}, {0}, theta.data(), static_cast<int64_t>(theta.size())); },
        [&] { p.Perturb({1}, {2}, {5}, {0.1f}); }, [&] { p.Perturb({1, 1}, {1, 1}, {5, 6}, {0.1f, 0.2f}); }};
    for (const auto& fill : fills) {
      fill();
      CHECK_THROWS(rows.Forward({0, 1}, Observations<float>(text, 2, 3)), refused);
      rows.Forward({0, 2, 3}, Observations<float>(text, 3, 3));  // the other rows are still prepared
      p.Prepare({1});
      CHECK(Bits(p.Statistics(1)) != Bits(first));
      // The row's previous content has no effect.
      std::vector<float> now(theta.size());
      p.Read({1}, now.data(), static_cast<int64_t>(now.size()));
      fresh.population->Assign({3}, {0}, now.data(), static_cast<int64_t>(now.size()));
      fresh.population->Prepare({3});
      CHECK_EQ(Bits(p.Statistics(1)), Bits(fresh.population->Statistics(3)));
      CHECK_EQ(Bits(rows.Forward({1}, seen)), Bits(fresh.Forward({3}, seen)));
    }
    p.Perturb({0}, {1}, {5}, {0.1f});  // a source stays prepared
    rows.Forward({1}, seen);
  }
}

TEST(LanesPrepareTheirRowsAtOnce) {
  const std::string text = "input float32 30; dense 64 1; vbn; bias; relu; dense 3 1";
  const auto batch = Observations<float>(text, 40, 1), seen = Observations<float>(text, 1, 2);
  Rows rows("cpu", {text}, 9, 3), expected("reference", {text}, 9);
  for (Rows* each : {&rows, &expected}) each->SetReference(batch);
  std::vector<std::thread> threads;
  std::vector<std::vector<uint32_t>> bits(4);
  for (int lane = 0; lane < 4; ++lane) {
    threads.emplace_back([&, lane] {
      const int64_t row = 1 + 2 * lane;
      for (int i = 0; i < 20; ++i) {
        rows.population->Perturb({row, row + 1}, {0, 0}, {100, 101}, {0.1f, 0.1f});
        rows.population->Prepare({row, row + 1});
        const auto own = Bits(rows.Forward({row + 1}, seen));
        bits[lane].insert(bits[lane].end(), own.begin(), own.end());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expected.population->Perturb({1}, {0}, {101}, {0.1f});
  expected.population->Prepare({1});
  std::vector<uint32_t> wanted;
  for (int i = 0; i < 20; ++i) {
    const auto own = Bits(expected.Forward({1}, seen));
    wanted.insert(wanted.end(), own.begin(), own.end());
  }
  for (int lane = 0; lane < 4; ++lane) CHECK_EQ(bits[lane], wanted);
}

TEST(Errors) {
  const std::string text = "input float32 2; dense 3 1; vbn; dense 2 1";
  for (const std::string backend : {"cpu", "reference"}) {
    Rows rows(backend, {text}, 2);
    Population& p = *rows.population;
    CHECK_THROWS(p.SetReference(kTwoObservations.data(), 0), "the reference batch has 0 observations, expected 1 to ");
    CHECK_THROWS(p.SetReference(kTwoObservations.data(), -1), "the reference batch has -1 observations");
    CHECK_THROWS(p.SetReference(kTwoObservations.data(), int64_t{1} << 40), "observations, expected 1 to 1048576");
    CHECK_THROWS(p.SetReference(nullptr, 2), "observations is null");
    CHECK_THROWS(p.Prepare({0}), "row 0 has a network with vbn, but no reference batch is set");
    rows.SetReference(kTwoObservations);
    CHECK_THROWS(rows.SetReference(kTwoObservations),
                 "the reference batch is already set, with 2 observations; set it only once");
    CHECK_THROWS(p.Prepare({0, 2}), "row 2 is out of range [0, 2)");
    CHECK_THROWS(p.Prepare({-1}), "row -1 is out of range [0, 2)");
    CHECK_THROWS(p.Statistics(7), "row 7 is out of range [0, 2)");
    CHECK_THROWS(rows.Forward({0}, kTwoObservations), "row 0 has a network with vbn");  // nothing was prepared
    p.Prepare({});
    auto empty = Population::Make(backend, {Network::Parse(text)}, 1, p.pool());
    CHECK_THROWS(empty->Prepare({0}), "row 0 has no network yet");
  }
  const std::string bytes = "input uint8 6; dense 3 1; vbn; bias; relu; dense 2 1";
  for (const std::string backend : {"cpu", "reference"}) {
    const auto make = [&] {
      Population::Make(backend, {Network::Parse(bytes)}, 1, std::make_shared<ThreadPool>(1), DType::kInt8);
    };
    CHECK_THROWS((make(), 0), "network 0 cannot be evaluated as int8: layer 2 'vbn' is not supported");
  }
}
