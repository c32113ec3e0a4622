// Weights made by the GPU's kernels, run on the CPU, hold the bits of noise.h.
#include "population/cuda/noise.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/noise.h"
#include "native/check.h"
#include "population/cuda/call.h"

using namespace neuroevo;
using cuda::Mutation;

namespace {

std::vector<uint32_t> Bits(const float* values, int64_t n) {
  std::vector<uint32_t> bits;
  for (int64_t i = 0; i < n; ++i) bits.push_back(ToBits(values[i]));
  return bits;
}

// Device memory, which the CPU can look into here.
struct Floats {
  explicit Floats(int64_t n) : memory(device::Where::kDevice, n * 4) {}
  float* data() const { return reinterpret_cast<float*>(memory.data()); }
  device::Memory memory;
};

}  // namespace

TEST(InitialWeightsAreScaledNoiseAndBiasesZero) {
  // Layers that begin and end in the middle of a counter's four values.
  const Network network = Network::Parse("input float32 3; dense 5 1.0; bias; dense 7 0.1; bias");
  Floats theta(network.dimension() + 8);
  cuda::InitTheta(network, 12345, theta.data(), nullptr);
  for (const Layer& layer : network.layers()) {
    for (int64_t i = layer.offset; i < layer.offset + layer.weights; ++i) {
      CHECK_EQ(theta.data()[i], Fma(layer.init_scale, Noise(12345, i), 0.0f));
    }
  }
  CHECK(std::isnan(theta.data()[network.dimension()]));  // nothing behind the end is written
}

TEST(MutationsFollowTheListThroughRowsThatItWrites) {
  const int64_t d = 1037;
  const Floats rows[4] = {Floats(d + 3), Floats(d + 3), Floats(d + 3), Floats(d + 3)};
  std::vector<std::vector<float>> expected(4, std::vector<float>(d));
  for (int row = 0; row < 2; ++row) {
    FillNoise(row, 0, d, expected[row].data());
    std::copy(expected[row].begin(), expected[row].end(), rows[row].data());
  }
  const Floats spread_row(d + 3);
  std::vector<float> spread(d);
  FillNoise(9, 0, d, spread.data());
  std::copy(spread.begin(), spread.end(), spread_row.data());
  struct Entry {
    int dst, src;
  };
  // A chain in a row, a copy of it, back into the source, and enough for more than one launch.
  std::vector<Entry> entries = {{2, 0}, {2, 2}, {3, 2}, {2, 2}, {0, 3}, {3, 1}, {1, 0}};
  for (int i = 0; i < 150; ++i) entries.push_back({2, 2});
  std::vector<Mutation> chain;
  for (size_t i = 0; i < entries.size(); ++i) {
    const float scale = 0.01f * static_cast<float>(i + 1);
    const uint64_t seed = 0xfedcba9876543210u + i;
    const bool scaled = i % 3 == 1;
    chain.push_back(
        {rows[entries[i].dst].data(), rows[entries[i].src].data(), seed, scale, scaled ? spread_row.data() : nullptr});
    const std::vector<float> source = expected[entries[i].src];
    AddNoise(seed, 0, d, scale, source.data(), expected[entries[i].dst].data(), scaled ? spread.data() : nullptr);
  }
  cuda::MutateThetas(chain, d, nullptr);
  for (int row = 0; row < 4; ++row) CHECK_EQ(Bits(rows[row].data(), d), Bits(expected[row].data(), d));
  for (int row = 2; row < 4; ++row) CHECK(std::isnan(rows[row].data()[d]));
}

TEST(UploadsOfAnyLengthArrive) {
  for (int64_t words : {1, 999, 1000, 1001, 4321}) {
    std::vector<uint32_t> sent(words);
    for (int64_t i = 0; i < words; ++i) sent[i] = static_cast<uint32_t>(i * 2654435761u);
    device::Memory memory(device::Where::kDevice, 4 * words + 4);
    cuda::Upload(memory.data(), sent.data(), 4 * words, nullptr);
    const uint32_t* got = reinterpret_cast<const uint32_t*>(memory.data());
    CHECK_EQ(std::vector<uint32_t>(got, got + words), sent);
    CHECK_EQ(got[words], 0xffffffffu);
  }
}
