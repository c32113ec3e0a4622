// The population: the CPU backend is bit-identical to the reference for all kinds of networks; shared and single rows;
// chains of mutations; and every error.
#include "population/population.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/noise.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";
const char kModel[] =
    "input uint8 84 84 4; conv 16 8 8 4 same 1.0; bias; relu; conv 32 4 4 2 same 1.0; bias; relu; "
    "dense 256 1.0; bias; relu; dense 18 0.1; bias";

// Population with short versions of its calls.
struct Rows {
  std::unique_ptr<Population> population;

  Rows(const std::string& backend, const std::vector<std::string>& texts, int64_t rows, int threads = 2) {
    std::vector<Network> networks;
    for (const std::string& text : texts) networks.push_back(Network::Parse(text));
    population = Population::Make(backend, networks, rows, std::make_shared<ThreadPool>(threads));
  }
  int64_t D(int network = 0) const { return population->networks()[network].dimension(); }
  void Init(const std::vector<int64_t>& rows, const std::vector<int32_t>& network, const std::vector<uint64_t>& seeds) {
    population->Init(rows, network, seeds);
  }
  void Assign(int64_t row, int network, const std::vector<float>& theta) {
    population->Assign({row}, {network}, theta.data(), D(network));
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
  template <class T>
  std::vector<float> Forward(const std::vector<int64_t>& rows, const std::vector<T>& observations) {
    std::vector<float> out(rows.size() * population->networks()[0].output_size());
    population->Forward(rows, observations.data(), out.data());
    return out;
  }
};

bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

uint64_t Hash(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (float value : values) hash = (hash ^ ToBits(value)) * 0x100000001b3u;
  return hash;
}

// Returns observations of the slots, partly zero.
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
uint64_t CheckBackendsAgree(const std::string& text) {
  Rows cpu("cpu", {text}, 4), reference("reference", {text}, 4);
  for (Rows* rows : {&cpu, &reference}) {
    rows->Init({0, 1, 2}, {0, 0, 0}, {1, 2, 3});
    rows->Perturb({0, 3, 2}, {0, 0, 2}, {10, 11, 12}, {0.1f, 0.1f, 0.05f});  // biases are no longer zero
  }
  for (int64_t row = 0; row < 4; ++row) CHECK(Same(cpu.Read(row), reference.Read(row)));
  // Row 0 has 11 slots, row 3 four, rows 1 and 2 one each, in mixed order.
  const std::vector<int64_t> slots = {0, 3, 0, 1, 0, 0, 3, 0, 0, 0, 2, 0, 3, 0, 0, 3, 0};
  const auto observations = Observations<T>(cpu.population->networks()[0], slots.size(), 99);
  const std::vector<float> out = cpu.Forward(slots, observations), expected = reference.Forward(slots, observations);
  CHECK(std::any_of(out.begin(), out.end(), [](float x) { return x != 0; }));
  for (size_t i = 0; i < out.size(); ++i) CHECK_EQ(ToBits(out[i]), ToBits(expected[i]));
  return Hash(out);
}

const float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST(CpuIsTheReferenceBitByBit) {
  const std::vector<std::string> float_networks = {
      "input float32 1; dense 1 1",
      "input float32 17; dense 5 1; tanh; dense 3 1; bias",
      "input float32 376; dense 256 1; bias; tanh; dense 256 1; bias; relu; dense 17 1; bias; tanh",
      "input float32 33; bias; relu; dense 31 1; tanh; bias; relu; dense 47 1; relu; bias; dense 129 1",
      "input float32 4 6; bias; tanh; dense 100 1; bias; relu; dense 2 1",
      "input float32 5; relu; bias",
      "input float32 7 10 3; conv 5 3 2 2 same 1; bias; tanh; conv 19 2 3 1 valid 1; relu; dense 9 1; bias",
      "input float32 9 9 1; conv 17 2 2 3 same 1; bias; relu; conv 33 3 3 2 same 1; dense 1 1",
      "input float32 13 29 2; conv 40 5 3 1 same 1; bias; relu; conv 3 3 5 2 valid 1; bias",
      "input float32 2 3 1; conv 70 5 7 1 same 1; tanh; bias; relu; conv 16 1 1 1 valid 1; dense 4 1",
      "input float32 6 30 2; relu; bias; conv 32 1 4 1 valid 1; bias; conv 65 2 2 2 same 1; bias; relu; dense 8 1",
      "input float32 20 20 3; conv 8 3 3 7 valid 1; dense 3 1",
      "input float32 8 9 5; max_pool 3 2 2 same; bias; leaky_relu 0.2; avg_pool 2 3 1 same; silu; dense 7 1; gelu",
      "input float32 7 6 3; conv 21 3 3 1 same 1; bias; gelu; max_pool 2 2 2 valid; layer_norm; conv 9 2 2 1 valid 1; "
      "silu; avg_pool 2 1 3 same; leaky_relu 0; dense 3 1",
      "input float32 37; layer_norm; bias; dense 33 1; layer_norm; silu; dense 5 1; leaky_relu 1.5; bias",
      "input float32 8 7 45; conv 200 3 3 1 same 1; bias; relu; conv 70 2 3 1 valid 1; bias; dense 3 1",
  };
  for (const std::string& text : float_networks) {
    const uint64_t hash = CheckBackendsAgree<float>(text);
    std::printf("hash %016llx of '%s'\n", static_cast<unsigned long long>(hash), text.c_str());
  }
  for (const std::string text :
       {kModel, "input uint8 50; dense 20 1; bias; relu; dense 4 1",
        "input uint8 11 12 3; max_pool 5 4 3 valid; conv 6 2 2 1 same 1; layer_norm; gelu; dense 4 1",
        "input uint8 19 23 4; "
        "conv 12 8 8 4 same 1; bias; relu; dense 64 1; relu; dense 6 1"}) {
    const uint64_t hash = CheckBackendsAgree<uint8_t>(text);
    std::printf("hash %016llx of '%s'\n", static_cast<unsigned long long>(hash), text.c_str());
  }
}

TEST(LargeModelIsTheReference) {
  Rows cpu("cpu", {kLargeModel}, 2), reference("reference", {kLargeModel}, 2);
  for (Rows* rows : {&cpu, &reference}) rows->Init({0, 1}, {0, 0}, {5, 6});
  const auto observations = Observations<uint8_t>(cpu.population->networks()[0], 4, 3);
  const std::vector<float> out = cpu.Forward({1, 0, 1, 1}, observations);
  CHECK(Same(out, reference.Forward({1, 0, 1, 1}, observations)));
  std::printf("hash %016llx of LargeModel\n", static_cast<unsigned long long>(Hash(out)));
}

// Returns images of rectangles of one color, some black, with a zero last channel; the first image is all zero. They
// have equal neighboring windows and common zeros, which the CPU backend exploits.
std::vector<float> FlatImages(const Network& network, int64_t images) {
  const auto [height, width, channels] = network.layers()[0].in;
  std::vector<float> values(images * network.input_size());
  for (size_t i = network.input_size(); i < values.size(); ++i) {
    const int64_t channel = i % channels, x = i / channels % width, y = i / channels / width % height;
    const int64_t rectangle = (i / network.input_size() * 8 + y / 7) * 8 + x / 9;
    const float color = Noise(7, rectangle * 4 + channel % 2);
    values[i] = channel == channels - 1 || color < -0.3f ? 0 : color;
  }
  return values;
}

TEST(FlatImagesAreTheReference) {
  for (const std::string text : {
           "input float32 40 37 3; conv 5 3 3 1 same 1; bias; relu; dense 9 1; bias",
           "input float32 33 50 4; conv 16 8 8 4 same 1; bias; relu; conv 32 4 4 2 same 1; bias; relu; dense 4 1",
           "input float32 29 31 5; conv 33 5 4 3 valid 1; relu; conv 70 3 3 1 same 1; bias; dense 4 1",
           "input float32 24 30 17; conv 64 3 3 1 same 1; bias; relu; conv 100 2 2 2 same 1; relu; dense 3 1",
           "input float32 9 64 2; conv 48 9 1 1 valid 1; conv 20 1 64 1 valid 1; dense 3 1; bias",
       }) {
    Rows cpu("cpu", {text}, 1), reference("reference", {text}, 1);
    for (Rows* rows : {&cpu, &reference}) {
      rows->Init({0}, {0}, {1});
      rows->Perturb({0}, {0}, {10}, {0.1f});
    }
    const std::vector<float> images = FlatImages(cpu.population->networks()[0], 4);
    const std::vector<int64_t> slots(4, 0);
    CHECK(Same(cpu.Forward(slots, images), reference.Forward(slots, images)));
  }
}

// The neighbors differ in a single bit, which a comparison with zero does not detect.
TEST(NeighborsOfOppositeSignAreNotEqual) {
  for (const std::string text :
       {"input float32 1 2 1; conv 1 1 1 1 valid 1", "input float32 1 64 1; conv 3 1 1 1 valid 1",
        "input float32 6 40 3; conv 20 3 3 1 same 1; bias; dense 4 1"}) {
    Rows cpu("cpu", {text}, 1), reference("reference", {text}, 1);
    for (Rows* rows : {&cpu, &reference}) rows->Init({0}, {0}, {1});
    const Network& network = cpu.population->networks()[0];
    for (uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<float> image(network.input_size());
      for (size_t i = 0; i < image.size(); ++i) image[i] = Noise(seed, i) < 0 ? -0.5f : 0.5f;
      CHECK(Same(cpu.Forward({0}, image), reference.Forward({0}, image)));
    }
  }
}

TEST(InitialWeights) {
  Rows rows("cpu", {"input uint8 8 8 2; conv 4 3 3 1 same 1.0; bias; dense 50 0.1; bias"}, 3);
  rows.Init({2}, {0}, {77});
  const std::vector<float> theta = rows.Read(2);
  for (const Layer& layer : rows.population->networks()[0].layers()) {
    for (int64_t i = layer.offset; i < layer.offset + layer.weights; ++i) {
      CHECK_EQ(theta[i], layer.init_scale == 0 ? 0.0f : Noise(77, i) * layer.init_scale);
    }
  }
  CHECK_EQ(rows.population->networks()[0].layers()[2].init_scale, static_cast<float>(0.1 / std::sqrt(256.0)));
}

TEST(SharingARowAndThreadsChangeNothing) {
  const auto observations = Observations<uint8_t>(Network::Parse(kModel), 20, 8);
  std::vector<float> alone;
  const size_t size = 84 * 84 * 4;
  for (int threads : {1, 2, 5}) {
    Rows rows("cpu", {kModel}, 20, threads);
    std::vector<int64_t> all(20);
    std::iota(all.begin(), all.end(), 0);
    rows.Init(all, std::vector<int32_t>(20, 0), std::vector<uint64_t>(20, 4));  // twenty rows with equal weights
    if (alone.empty()) {
      for (int s = 0; s < 20; ++s) {
        const std::vector<uint8_t> one(observations.begin() + s * size, observations.begin() + (s + 1) * size);
        const std::vector<float> out = rows.Forward({3}, one);
        alone.insert(alone.end(), out.begin(), out.end());
      }
    }
    CHECK(Same(rows.Forward(all, observations), alone));
    for (int64_t groups : {1, 2, 3, 5, 7}) {
      std::vector<int64_t> slots(20);
      for (int s = 0; s < 20; ++s) slots[s] = s % groups;
      CHECK(Same(rows.Forward(slots, observations), alone));
    }
  }
}

TEST(TwoNetworksInOneCall) {
  const std::string a = "input float32 6 6 2; conv 3 3 3 1 same 1; relu; dense 4 1; bias";
  const std::string b = "input float32 6 6 2; dense 11 1; tanh; dense 4 1";
  Rows both("cpu", {a, b}, 4), only_a("cpu", {a}, 1), only_b("cpu", {b}, 1);
  both.Init({0, 1, 2, 3}, {0, 1, 1, 0}, {1, 2, 3, 4});
  const auto observations = Observations<float>(Network::Parse(a), 4, 5);
  const std::vector<float> out = both.Forward({0, 1, 2, 3}, observations);
  for (int k = 0; k < 4; ++k) {
    Rows& only = k == 0 || k == 3 ? only_a : only_b;
    only.Init({0}, {0}, {static_cast<uint64_t>(k + 1)});
    const std::vector<float> one(observations.begin() + k * 72, observations.begin() + (k + 1) * 72);
    CHECK(Same(only.Forward({0}, one), std::vector<float>(out.begin() + k * 4, out.begin() + (k + 1) * 4)));
  }
  // A row takes over the network of its source at that point of the list.
  both.Perturb({0, 1, 0}, {1, 0, 3}, {9, 10, 11}, {1, 1, 1});
  only_b.Init({0}, {0}, {2});
  only_b.Perturb({0, 0}, {0, 0}, {9, 10}, {1, 1});
  CHECK(Same(both.Read(1, 1), only_b.Read(0)));
  only_a.Init({0}, {0}, {4});
  only_a.Perturb({0}, {0}, {11}, {1});
  CHECK(Same(both.Read(0, 0), only_a.Read(0)));
}

TEST(Chains) {
  // Longer than a task's chunk, so that chains are split.
  const std::string text = "input float32 300; dense 300 1; bias; dense 3 1";
  const int64_t rows_count = 12;
  for (const std::string backend : {"cpu", "reference"}) {
    Rows rows(backend, {text}, rows_count + 2, 3);
    const int64_t d = rows.D();
    std::vector<std::vector<float>> expected(rows_count, std::vector<float>(d));
    std::vector<int64_t> all(rows_count);
    std::iota(all.begin(), all.end(), 0);
    rows.Init(all, std::vector<int32_t>(rows_count, 0), std::vector<uint64_t>(rows_count, 1));
    for (int64_t r = 0; r < rows_count; ++r) expected[r] = rows.Read(0);
    for (int64_t r = rows_count; r < rows_count + 2; ++r) {  // spreads of all sizes and both signs, with zeros
      expected.emplace_back(d);
      for (int64_t j = 0; j < d; ++j) {
        expected[r][j] = j % 7 == 3 ? 0.0f : std::ldexp(Noise(r, j), static_cast<int>(j % 13) - 6);
      }
      rows.Assign(r, 0, expected[r]);
    }
    std::vector<int64_t> dst, src, spreads;
    std::vector<uint64_t> seeds;
    std::vector<float> scale;
    for (int i = 0; i < 40; ++i) {  // chains, forks, joins, rows overwritten after they were read
      const Philox words = PhiloxWords(6, i);
      dst.push_back(words.word[0] % rows_count);
      src.push_back(i % 3 == 0 ? words.word[1] % rows_count : dst.back());
      seeds.push_back(i % 7);
      scale.push_back(i % 5 == 0 ? -0.5f : 0.3f);
      spreads.push_back(i % 4 == 0 ? rows_count + i / 4 % 2 : -1);
    }
    rows.Perturb(dst, src, seeds, scale, spreads);
    for (size_t i = 0; i < dst.size(); ++i) {
      for (int64_t j = 0; j < d; ++j) {
        const float own_scale = spreads[i] < 0 ? scale[i] : scale[i] * expected[spreads[i]][j];
        expected[dst[i]][j] = std::fmaf(own_scale, Noise(seeds[i], j), expected[src[i]][j]);
      }
    }
    for (int64_t r = 0; r < rows_count + 2; ++r) CHECK(Same(rows.Read(r), expected[r]));
  }
}

TEST(AssignAndReadTakeStrides) {
  Rows rows("cpu", {"input float32 3; dense 2 1"}, 5);
  const std::vector<float> thetas = {1, 2, 3, 4, 5, 6, -1, 7, 8, 9, 10, 11, 12, -1};
  rows.population->Assign({4, 1}, {0, 0}, thetas.data(), 7);
  CHECK(Same(rows.Read(4), {1, 2, 3, 4, 5, 6}));
  std::vector<float> out(16, 99);
  rows.population->Read({1, 4}, out.data(), 8);
  CHECK(Same(out, {7, 8, 9, 10, 11, 12, 99, 99, 1, 2, 3, 4, 5, 6, 99, 99}));
  CHECK(Same(rows.Forward<float>({1}, {1, 0, -1}), {7 - 11, 8 - 12}));
}

TEST(RowsOfOthersNeverShow) {
  for (const std::string backend : {"cpu", "reference"}) {
    for (const std::string text : {"input float32 9; dense 5 1; bias; relu; dense 3 1; bias",
                                   "input float32 6 5 2; conv 7 3 3 2 same 1; bias; relu; dense 3 1; bias"}) {
      Rows rows(backend, {text}, 5);
      rows.Init({0, 1, 2, 3, 4}, {0, 0, 0, 0, 0}, {1, 2, 3, 4, 5});
      const auto observations = Observations<float>(rows.population->networks()[0], 3, 1);
      const std::vector<float> before = rows.Forward({1, 3, 1}, observations);
      for (int64_t row : {0, 2, 4}) rows.Assign(row, 0, std::vector<float>(rows.D(), kNan));
      const std::vector<float> after = rows.Forward({1, 3, 1}, observations);
      CHECK(Same(before, after));
      for (float value : after) CHECK(std::isfinite(value));
    }
  }
}

TEST(WeightsBehindZerosAreNotRead) {
  // True for the reference by definition, and for the CPU backend for dense layers and for convolutions if the input is
  // zero at that tap for all pixels.
  for (const std::string backend : {"cpu", "reference"}) {
    Rows rows(backend, {"input float32 4; dense 3 1"}, 1);
    std::vector<float> theta(12, 1.5f);
    std::fill_n(theta.begin() + 6, 3, kNan);
    rows.Assign(0, 0, theta);
    CHECK(Same(rows.Forward<float>({0}, {1, 2, 0, 1}), {6, 6, 6}));
    CHECK(Same(rows.Forward<float>({0}, {1, 2, -0.0f, 1}), {6, 6, 6}));
    CHECK(std::isnan(rows.Forward<float>({0}, {1, 2, 1, 1})[0]));
    // An input that is zero in all slots that share the row, and a slot with only zeros.
    CHECK(Same(rows.Forward<float>({0, 0}, {1, 2, 0, 1, 0, 0, 0, 0}), {6, 6, 6, 0, 0, 0}));

    Rows images(backend, {"input float32 8 9 2; conv 3 3 3 1 same 1"}, 1);
    theta.assign(54, 0.5f);  // [3, 3, 2, 3]
    for (int tap = 1; tap < 18; tap += 2) std::fill_n(theta.begin() + tap * 3, 3, kNan);
    images.Assign(0, 0, theta);
    std::vector<float> image(144, 0.0f);
    CHECK(Same(images.Forward<float>({0}, image), std::vector<float>(216, 0.0f)));
    for (int pixel = 0; pixel < 72; ++pixel) image[2 * pixel] = 1;
    const std::vector<float> out = images.Forward<float>({0}, image);
    CHECK_EQ(out[0], 2.0f);            // a corner: 4 taps inside
    CHECK_EQ(out[(9 + 1) * 3], 4.5f);  // 9 taps inside
    CHECK_EQ(out[(9 + 8) * 3], 3.0f);  // the right edge
    image[2 * 40 + 1] = 1;
    CHECK(std::isnan(images.Forward<float>({0}, image)[40 * 3]));
  }
}

TEST(EmptyCalls) {
  Rows rows("cpu", {"input float32 4; dense 3 1"}, 2);
  rows.population->Forward({}, nullptr, nullptr);
  rows.population->Init({}, {}, {});
  rows.population->Assign({}, {}, nullptr, 0);
  rows.population->Read({}, nullptr, 0);
  rows.population->Perturb({}, {}, {}, {});
}

TEST(UnwrittenRowsCostNothing) {
  // 1.6 GB of address space; memory is only allocated for the two rows in use.
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  Rows rows("cpu", {kLargeModel}, 100);
  rows.Init({0, 99}, {0, 0}, {1, 2});
  CHECK_EQ(rows.Read(99)[7], Noise(2, 7) * rows.population->networks()[0].layers()[0].init_scale);
  getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss < before.ru_maxrss + (400 << 10));  // KiB
}

TEST(CallsOfManyThreadsAtOnce) {
  const std::string text = "input float32 40; dense 64 1; bias; relu; dense 3 1";
  Rows rows("cpu", {text}, 16, 4);
  std::vector<int64_t> all(16);
  std::iota(all.begin(), all.end(), 0);
  rows.Init(all, std::vector<int32_t>(16, 0), std::vector<uint64_t>(16, 3));
  const auto observations = Observations<float>(rows.population->networks()[0], 1, 1);
  const std::vector<float> expected = rows.Forward({0}, observations);
  std::vector<std::thread> threads;
  std::vector<int> good(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      // Each thread writes and reads its own rows, and all read row 0.
      for (int i = 0; i < 50; ++i) {
        rows.Perturb({4 + 3 * t, 5 + 3 * t}, {0, 4 + 3 * t}, {1, 2}, {1, 1});
        rows.Forward({4 + 3 * t}, observations);
        good[t] += Same(rows.Forward({0}, observations), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) CHECK_EQ(good[t], 50);
}

// Replaces a network, which affects its rows and the memory of slots, while other rows continue to be evaluated.
TEST(ReplacedNetworksAreAsIfMadeSo) {
  const std::string first = "input uint8 9 9 2; conv 4 3 3 2 same 1.0; bias; relu; dense 3 1.0; bias";
  const std::string largest = "input uint8 9 9 2; dense 20 0; relu; dense 3 0";
  const std::vector<std::string> others = {
      "input uint8 9 9 2; conv 3 2 2 1 valid 1.0; bias; relu; conv 5 3 3 3 same 1.0; bias; relu; dense 3 0.5",
      // As int8 it takes more bytes than the largest network, though it has no more weights.
      "input uint8 9 9 2; conv 1 1 1 9 same 1.0; bias; relu; conv 600 1 1 1 same 1.0; bias; relu; dense 3 1.0",
      "input uint8 9 9 2; dense 16 1.0; bias; relu; dense 3 1.0; bias", "input uint8 9 9 2; dense 3 1.0"};
  std::vector<uint8_t> screens(4 * 162);
  for (size_t i = 0; i < screens.size(); ++i) screens[i] = static_cast<uint8_t>(i * 37 % 251);
  for (const std::string backend : {"cpu", "reference"}) {
    for (DType dtype : {DType::kFloat32, DType::kInt8}) {
      const auto make = [&](const std::vector<std::string>& texts) {
        std::vector<Network> networks;
        for (const std::string& text : texts) networks.push_back(Network::Parse(text));
        return Population::Make(backend, networks, 3, std::make_shared<ThreadPool>(2), dtype, 1);
      };
      const auto replaced = make({first, largest});
      for (const std::string& other : others) {
        replaced->Replace(1, Network::Parse(other));
        CHECK_THROWS(replaced->Perturb({1}, {1}, {1}, {1}), "has no network yet");
        const auto fresh = make({first, other});
        std::vector<float> expected(6), found(6);
        for (Population* population : {replaced.get(), fresh.get()}) {
          population->Init({0, 1}, {0, 1}, {5, 6});
          population->Perturb({1}, {1}, {7}, {0.5f});
          float* out = population == fresh.get() ? expected.data() : found.data();
          for (int step = 0; step < 2; ++step) population->Forward({0, 1}, screens.data() + step * 324, out, {0, 1});
        }
        CHECK(found == expected);
      }
      CHECK_THROWS(replaced->Replace(2, Network::Parse(first)), "network 2 is out of range [0, 2)");
      CHECK_THROWS(replaced->Replace(1, Network::Parse("input uint8 9 9 2; dense 30 0; relu; dense 3 0")),
                   "4950 weights and a state of 0, expected at most 3300 and 0");
      CHECK_THROWS(replaced->Replace(1, Network::Parse("input uint8 9 9 2; dense 2 0")), "has 2 outputs");
      CHECK_THROWS(replaced->Replace(1, Network::Parse("input float32 9 9 2; dense 3 0")), "has input float32");
      if (dtype == DType::kInt8) {
        CHECK_THROWS(replaced->Replace(1, Network::Parse("input uint8 9 9 2; dense 4 0; tanh; dense 3 0")),
                     "cannot be evaluated as int8");
      }
      replaced->Init({1}, {1}, {6});  // the previous network is still in place
      CHECK_EQ(replaced->networks()[1].text(), others.back());
    }
  }
}

TEST(MakeErrors) {
  const std::string a = "input float32 4; dense 3 1";
  CHECK_THROWS(Rows("gpu", {a}, 2), "backend is 'gpu', expected 'cpu' or 'reference'");
  CHECK_THROWS(Rows("cpu", {}, 2), "a population needs at least 1 network, found 0");
  CHECK_THROWS(Rows("cpu", {a}, 0), "rows is 0, expected 1 to 16777216");
  CHECK_THROWS(Rows("cpu", {a}, 16777217), "rows is 16777217");
  CHECK_THROWS(Rows("cpu", {"input uint8 9999; dense 99999 1"}, 16777216), "cannot map");
  CHECK_THROWS(Rows("cpu", {"input uint8 999; dense 999 1"}, 1 << 20),
               "1048576 rows of networks need 4187.66 GB of memory, but only ");
  CHECK_THROWS(Rows("reference", {"input uint8 999; dense 999 1"}, 1 << 20), " GB of memory, but only ");
  CHECK_THROWS(Rows("cpu", {a, "input uint8 4; dense 3 1"}, 2),
               "network 1 has input uint8 4, but network 0 has input float32 4");
  CHECK_THROWS(Rows("cpu", {a, "input float32 2 2; dense 3 1"}, 2), "network 1 has input float32 2 2");
  CHECK_THROWS(Rows("cpu", {a, a, "input float32 4; dense 5 1"}, 2), "network 2 has 5 outputs, but network 0 has 3");
  CHECK_THROWS(Population::Make("cpu", {Network::Parse(a)}, 1, nullptr), "needs a thread pool, found null");
}

TEST(CallErrors) {
  const std::string a = "input float32 4; dense 3 1", b = "input float32 4; dense 2 1; dense 3 1";
  for (const std::string backend : {"cpu", "reference"}) {
    Rows rows(backend, {a, b}, 8);
    rows.Init({0, 1}, {0, 1}, {1, 2});
    const std::vector<float> before = rows.Read(0);
    std::vector<float> x(100), out(100);
    Population& p = *rows.population;
    CHECK_THROWS(p.Init({9}, {0}, {1}), "row 9 is out of range [0, 8)");
    CHECK_THROWS(p.Init({-1}, {0}, {1}), "row -1 is out of range [0, 8)");
    CHECK_THROWS(p.Init({0, 2, 0}, {0, 0, 0}, {1, 2, 3}), "row 0 is given twice");
    CHECK_THROWS(p.Init({0, 2}, {0, 2}, {1, 2}), "network 2 is out of range [0, 2)");
    CHECK_THROWS(p.Init({0, 2}, {0}, {1, 2}), "network has 1 entries, expected 2 as in rows");
    CHECK_THROWS(p.Init({0, 2}, {0, 0}, {1}), "seeds has 1 entries, expected 2 as in rows");
    CHECK_THROWS(p.Assign({0, 8}, {0, 0}, x.data(), 50), "row 8 is out of range [0, 8)");
    CHECK_THROWS(p.Assign({3, 3}, {0, 0}, x.data(), 50), "row 3 is given twice");
    CHECK_THROWS(p.Assign({3}, {0}, x.data(), 11), "stride is 11, expected at least the network's D = 12");
    CHECK_THROWS(p.Assign({3}, {0}, nullptr, 12), "thetas is null for 1 rows");
    CHECK_THROWS(p.Read({3}, out.data(), 50), "row 3 has no network yet: fill it with Init");
    CHECK_THROWS(p.Read({0, 1}, out.data(), 12), "stride is 12, expected at least the network's D = 14");
    CHECK_THROWS(p.Read({1}, nullptr, 50), "out is null");
    CHECK_THROWS(p.Perturb({8}, {0}, {1}, {1}), "dst row 8 is out of range [0, 8)");
    CHECK_THROWS(p.Perturb({0}, {-7}, {1}, {1}), "src row -7 is out of range [0, 8)");
    CHECK_THROWS(p.Perturb({0, 1}, {0, 3}, {1, 1}, {1, 1}), "row 3 has no network yet");
    CHECK_THROWS(p.Perturb({0, 1}, {0, 1}, {1, 1}, {1, kNan}), "scale 1 is nan, expected a finite number");
    CHECK_THROWS(p.Perturb({0}, {0}, {1}, {-INFINITY}), "scale 0 is -inf");
    CHECK_THROWS(p.Perturb({0, 1}, {0}, {1, 1}, {1, 1}), "src has 1 entries, expected 2 as in dst");
    CHECK_THROWS(p.Perturb({0}, {0}, {}, {1}), "seeds has 0 entries, expected 1 as in dst");
    CHECK_THROWS(p.Perturb({0}, {0}, {1}, {}), "scale has 0 entries, expected 1 as in dst");
    CHECK_THROWS(p.Perturb({0}, {0}, {1}, {1}, {-1, -1}), "spreads has 2 entries, expected 1 as in dst");
    CHECK_THROWS(p.Perturb({2}, {0}, {1}, {1}, {8}), "spread row 8 is out of range [0, 8)");
    CHECK_THROWS(p.Perturb({2}, {0}, {1}, {1}, {-2}), "spread row -2 is out of range [0, 8)");
    CHECK_THROWS(p.Perturb({2}, {0}, {1}, {1}, {3}), "row 3 has no network yet");
    CHECK_THROWS(p.Perturb({2}, {0}, {1}, {1}, {1}), "spread row 1 has network 1, expected 0 as dst row 2");
    CHECK_THROWS(p.Perturb({2, 3}, {0, 2}, {1, 1}, {1, 1}, {-1, 2}), "spread row 2 is written by the same call");
    CHECK_THROWS(p.Perturb({0}, {0}, {1}, {1}, {0}), "spread row 0 is written by the same call, expected a row that");
    CHECK_THROWS(p.Forward({0, 9}, x.data(), out.data()), "row 9 is out of range [0, 8)");
    CHECK_THROWS(p.Forward({0, 5}, x.data(), out.data()), "row 5 has no network yet");
    CHECK_THROWS(p.Forward({0}, nullptr, out.data()), "observations is null");
    CHECK_THROWS(p.Forward({0}, x.data(), nullptr), "out is null");
    // Nothing has changed, and no row has become filled.
    CHECK(Same(rows.Read(0), before));
    CHECK_THROWS(p.Read({2}, out.data(), 50), "row 2 has no network yet");
    // A row that an earlier entry fills may be read by a later one.
    rows.Perturb({3, 4}, {0, 3}, {1, 2}, {1, 1});
    CHECK_EQ(rows.Read(4).size(), size_t{12});
    try {
      p.Forward({9}, x.data(), out.data());
    } catch (const Error& error) {
      CHECK(error.kind() == Error::Kind::kOutOfRange);
    }
  }
}
