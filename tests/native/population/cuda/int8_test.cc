// Integer networks with the GPU's kernels emulated on the CPU: quantization and evaluation are bit-identical to the
// reference.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/noise.h"
#include "core/philox.h"
#include "native/check.h"
#include "networks/int8/rules.h"
#include "population/cuda/int8/network.h"
#include "population/population.h"

using namespace neuroevo;

namespace {

const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";
const char kModel[] =
    "input uint8 84 84 4; conv 16 8 8 4 same 1.0; bias; relu; conv 32 4 4 2 same 1.0; bias; relu; "
    "dense 256 1.0; bias; relu; dense 18 0.1; bias";

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

uint64_t Below(uint64_t seed, uint64_t i, uint64_t n) { return PhiloxWords(seed, i).word[0] % n; }

// Rows of weights, some of which are dead: packed rows filled with 0xff, which must not be read.
struct Rows {
  Network network;
  cuda::CudaInt8Network cuda;
  int64_t rows, stride;
  device::Memory packed;
  std::unique_ptr<Population> reference;

  // thetas [live.size(), D]: weights of rows live[i].
  Rows(const std::string& text, int64_t rows, const std::vector<int64_t>& live, const std::vector<float>& thetas)
      : network(Network::Parse(text)),
        cuda(network, 0),
        rows(rows),
        stride(cuda.row_bytes() + 256),
        packed(device::Where::kDevice, rows * stride),
        reference(Population::Make("reference", {network}, rows, std::make_shared<ThreadPool>(2), DType::kInt8, 0)) {
    CHECK_EQ(cuda.row_bytes() % 256, 0);
    const int64_t d = network.dimension();
    std::vector<std::unique_ptr<device::Memory>> theta_memory;
    std::vector<const float*> theta_rows;
    std::vector<char*> packed_rows;
    for (size_t i = 0; i < live.size(); ++i) {
      // Allocated with the exact size and partly misaligned, since theta is only guaranteed to be aligned to 4 bytes.
      theta_memory.push_back(std::make_unique<device::Memory>(device::Where::kDevice, (d + 1) * 4));
      float* theta = reinterpret_cast<float*>(theta_memory.back()->data()) + i % 2;
      std::copy_n(thetas.begin() + static_cast<int64_t>(i) * d, d, theta);
      theta_rows.push_back(theta);
      packed_rows.push_back(packed.data() + live[i] * stride);
    }
    const device::Memory workspace(device::Where::kDevice, cuda.QuantizeBytes(static_cast<int64_t>(live.size())));
    cuda.Quantize(theta_rows, packed_rows, workspace.data(), nullptr);
    for (int64_t row = 0; row < rows; ++row) {
      const bool alive = std::find(live.begin(), live.end(), row) != live.end();
      const char* begin = packed.data() + row * stride;
      const auto poison = [](char byte) { return byte == '\xff'; };
      CHECK(std::all_of(alive ? begin + cuda.row_bytes() : begin, begin + stride, poison));
    }
    reference->Assign(live, std::vector<int32_t>(live.size(), 0), thetas.data(), d);
  }

  // Returns outputs [S, A], NaN for slots that are not part of the call.
  std::vector<float> Forward(const cuda::CallSlots& call, const std::vector<uint8_t>& observations, int64_t shift = 0) {
    const int64_t slots = static_cast<int64_t>(observations.size()) / network.input_size();
    const int64_t values = slots * network.output_size();
    const device::Memory in(device::Where::kDevice, static_cast<int64_t>(observations.size()) + shift);
    const device::Memory out(device::Where::kDevice, values * 4);
    const device::Memory workspace(device::Where::kDevice, cuda.WorkspaceBytes(call.count()));
    std::copy(observations.begin(), observations.end(), reinterpret_cast<uint8_t*>(in.data()) + shift);
    cuda.Forward(packed.data(), stride, call, reinterpret_cast<uint8_t*>(in.data()) + shift,
                 reinterpret_cast<float*>(out.data()), workspace.data(), nullptr);
    const float* begin = reinterpret_cast<float*>(out.data());
    return std::vector<float>(begin, begin + values);
  }

  // Slot k evaluates rows[k], or is unused if rows[k] is -1.
  static cuda::CallSlots Call(const std::vector<int64_t>& rows) {
    cuda::CallSlots call;
    for (size_t k = 0; k < rows.size(); ++k) {
      if (rows[k] >= 0) call.slots.push_back(static_cast<int32_t>(k));
    }
    std::stable_sort(call.slots.begin(), call.slots.end(), [&](int32_t a, int32_t b) { return rows[a] < rows[b]; });
    for (int32_t slot : call.slots) call.rows.push_back(static_cast<int32_t>(rows[slot]));
    return call;
  }

  // Checks every bit of the outputs and returns them.
  std::vector<float> Check(const std::vector<int64_t>& rows, const std::vector<uint8_t>& observations,
                           int64_t shift = 0) {
    const std::vector<float> out = Forward(Call(rows), observations, shift);
    const int64_t outputs = network.output_size(), size = network.input_size();
    std::vector<int64_t> live;
    std::vector<uint8_t> live_observations;
    for (size_t k = 0; k < rows.size(); ++k) {
      if (rows[k] < 0) continue;
      live.push_back(rows[k]);
      const auto observation = observations.begin() + static_cast<int64_t>(k) * size;
      live_observations.insert(live_observations.end(), observation, observation + size);
    }
    std::vector<float> expected(live.size() * outputs);
    reference->Forward(live, live_observations.data(), expected.data());
    size_t next = 0;
    for (size_t k = 0; k < rows.size(); ++k) {
      for (int64_t i = 0; i < outputs; ++i) {
        const float value = out[k * outputs + i];
        CHECK_EQ(ToBits(value), rows[k] < 0 ? 0xffffffffu : ToBits(expected[next++]));
      }
    }
    return out;
  }
};

// Returns weights and biases of the magnitude of a trained network's.
std::vector<float> Weights(const Network& network, int64_t rows, uint64_t seed) {
  std::vector<float> thetas(rows * network.dimension());
  FillNoise(seed, 0, static_cast<int64_t>(thetas.size()), thetas.data());
  for (int64_t row = 0; row < rows; ++row) {
    for (const Layer& layer : network.layers()) {
      const float scale = layer.kind == Layer::Kind::kBias ? 0.2f : layer.init_scale;
      float* weights = thetas.data() + row * network.dimension() + layer.offset;
      for (int64_t i = 0; i < layer.weights; ++i) weights[i] *= scale;
    }
  }
  return thetas;
}

std::vector<uint8_t> Observations(const Network& network, size_t slots, uint64_t seed) {
  std::vector<uint8_t> values(slots * network.input_size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<uint8_t>(std::min(255.0f, std::max(0.0f, Noise(seed, i)) * 80));
  }
  return values;
}

// Returns screens with a few bright rectangles on black, like most Atari screens; some are all black or all white.
std::vector<uint8_t> Screens(const Network& network, size_t slots, uint64_t seed) {
  const std::vector<int>& shape = network.input_shape();
  std::vector<uint8_t> values(slots * network.input_size(), 0);
  for (size_t slot = 0; slot < slots; ++slot) {
    uint8_t* screen = values.data() + slot * network.input_size();
    if (slot % 5 == 3) memset(screen, slot % 2 == 0 ? 255 : 0, network.input_size());
    for (uint64_t r = 0; slot % 5 != 3 && r < 6; ++r) {
      const uint64_t i = (slot * 6 + r) * 4;
      const int top = Below(seed, i, shape[0]), left = Below(seed, i + 1, shape[1]);
      for (int y = top; y < std::min(top + 9, shape[0]); ++y) {
        for (int x = left; x < std::min(left + 5, shape[1]); ++x) {
          screen[(y * shape[1] + x) * shape[2] + r % shape[2]] = static_cast<uint8_t>(Below(seed, i + 2, 255) + 1);
        }
      }
    }
  }
  return values;
}

std::vector<int64_t> Range(int64_t n) {
  std::vector<int64_t> rows(n);
  for (int64_t i = 0; i < n; ++i) rows[i] = i;
  return rows;
}

bool Varied(const std::vector<float>& values) {
  return std::any_of(values.begin(), values.end(), [&](float value) { return value != values[0]; });
}

}  // namespace

TEST(OddShapes) {
  const std::vector<std::string> texts = {
      "input uint8 1; dense 1 1; bias",
      "input uint8 7; dense 65 1; relu; dense 3 1; bias; relu",
      "input uint8 16; dense 2 1",
      "input uint8 300; dense 129 1; bias; relu; dense 64 1; relu; dense 2 1; bias",
      "input uint8 2100; dense 18 1; bias; relu; dense 513 1; bias; relu; dense 512 1; relu; dense 18 1",
      "input uint8 9 7 3; conv 5 3 2 2 same 1.0; bias; relu; conv 7 2 4 1 valid 1.0; relu; dense 3 1.0",
      "input uint8 5 5 1; conv 1 5 5 7 same 1.0; bias",
      "input uint8 30 31 2; conv 16 3 3 1 same 1; bias; relu; conv 40 5 1 3 valid 1; bias; relu; "
      "conv 70 1 1 1 same 1; relu",
      "input uint8 6 6 5; conv 33 3 3 2 same 1; relu; dense 8 1; bias; relu; dense 4 1; bias",
      "input uint8 17 13 8; conv 18 4 5 3 valid 1; bias; relu; conv 64 3 1 2 same 1; bias; relu; dense 18 1; bias",
      "input uint8 3 3 16; conv 64 5 5 1 same 1; bias; relu; conv 3 3 3 4 same 1; relu; conv 33 1 1 1 valid 1; bias",
      "input uint8 4 6 4; conv 20 2 3 1 same 1; relu; dense 5 1; relu",
      "input uint8 6 5 3; dense 9 1; bias; relu; dense 2 1",
      "input uint8 40 3; dense 9 1; bias; relu; dense 2 1",
      "input uint8 12 12 64; conv 33 3 3 1 same 1; bias; relu; conv 34 3 3 3 same 1; bias",
  };
  for (const std::string& text : texts) {
    const Network network = Network::Parse(text);
    Rows rows(text, 5, {0, 1, 3}, Weights(network, 3, 7));
    // Row 0 has 9 slots, row 3 three and row 1 one, in mixed order, with unused slots in between.
    const std::vector<int64_t> slots = {0, 3, 0, -1, 1, 0, 0, 3, 0, 0, -1, -1, 0, 3, -1, 0, 0};
    const auto observations = Observations(network, slots.size(), 99);
    CHECK(Varied(rows.Check(slots, observations)));
    rows.Check({-1, 3}, {observations.begin(), observations.begin() + 2 * network.input_size()});
  }
}

TEST(AnyNumberOfSlotsOfAnyRows) {
  const std::string text =
      "input uint8 10 9 4; conv 12 3 3 2 same 1; bias; relu; dense 40 1; bias; relu; dense 6 1; bias";
  const Network network = Network::Parse(text);
  const int64_t live = 70;
  Rows rows(text, live, Range(live), Weights(network, live, 1));
  const auto observations = Observations(network, 2 * live, 2);
  std::vector<float> alone;  // outputs of row slot % live for every slot, each computed in a separate call
  for (int64_t slot = 0; slot < 2 * live; ++slot) {
    std::vector<int64_t> call(2 * live, -1);
    call[slot] = slot % live;
    const std::vector<float> out = rows.Forward(Rows::Call(call), observations);
    alone.insert(alone.end(), out.begin() + slot * 6, out.begin() + (slot + 1) * 6);
  }
  for (int64_t k : {1, 2, 31, 32, 33, 64, 70}) {
    const std::vector<uint8_t> some(observations.begin(), observations.begin() + k * network.input_size());
    std::vector<int64_t> distinct, shared(k, 5), mixed;
    for (int64_t slot = 0; slot < k; ++slot) {
      distinct.push_back(slot);
      mixed.push_back(Below(3, slot, 4) == 0 ? static_cast<int64_t>(Below(4, slot, live)) : 10 + slot * slot % 7);
    }
    const std::vector<float> out = rows.Check(distinct, some);
    for (size_t i = 0; i < out.size(); ++i) CHECK_EQ(ToBits(out[i]), ToBits(alone[i]));
    std::reverse(distinct.begin(), distinct.end());
    rows.Check(distinct, some);
    rows.Check(shared, some);
    rows.Check(mixed, some);
  }
  // More blocks than a grid's second dimension can have.
  Rows tiny("input uint8 1; dense 1 1", 1, {0}, {1.0f});
  std::vector<uint8_t> bytes(66000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  cuda::CallSlots call;
  for (int32_t slot = 65999; slot >= 0; --slot) call.slots.push_back(slot);
  call.rows.assign(bytes.size(), 0);
  const std::vector<float> out = tiny.Forward(call, bytes);
  for (size_t i = 0; i < bytes.size(); ++i) CHECK_EQ(out[i], static_cast<float>(bytes[i] / 255.0));
}

TEST(AnyWeightsAndObservations) {
  const std::string text =
      "input uint8 8 8 2; conv 6 3 3 2 same 1; bias; relu; dense 20 1; bias; relu; dense 5 1; bias";
  const Network network = Network::Parse(text);
  const int64_t d = network.dimension(), live = 48;
  std::vector<float> thetas(live * d);
  for (int64_t row = 0; row < live; ++row) {
    for (int64_t i = 0; i < d; ++i) {
      float& weight = thetas[row * d + i];
      const Philox words = PhiloxWords(row + 100, i);
      // Every exponent, including NaN and infinity, or exponents around 1, or few kinds of values.
      weight = FromBits(row % 2 == 0 ? words.word[0] : (words.word[0] & 0x80ffffff) | (words.word[1] % 64 + 96) << 23);
      if (row % 8 == 1) weight = 0;
      if (row % 8 == 2) weight = i % 2 == 0 ? 1e20f : 1e-30f;
      if (row % 8 == 3) weight = i % 97 == 5 ? kNan : std::fmod(weight, 1.0f);
      if (row % 8 == 4) weight = i % 301 == 5 ? -kInfinity : std::fmod(weight, 1e6f);
      if (row % 8 == 5) weight = (static_cast<int>(words.word[2] % 512) - 256) * 0.5f;  // ties
      if (row % 8 == 6) weight = 1e-44f * static_cast<float>(words.word[2] % 7);        // denormal
    }
  }
  Rows rows(text, live, Range(live), thetas);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    auto observations = Observations(network, live, seed);
    if (seed == 0) std::fill(observations.begin(), observations.end(), 0);
    if (seed == 1) std::fill(observations.begin(), observations.end(), 255);
    for (float value : rows.Check(Range(live), observations)) CHECK(value == value);
    std::vector<int64_t> shared(live);
    for (int64_t i = 0; i < live; ++i) shared[i] = i / 8 * 7;
    rows.Check(shared, observations);
  }
}

TEST(SumsStayInRangeAtTheLargestFanIn) {
  const std::string text = "input uint8 33155; dense 1 1; bias";
  std::vector<float> theta(33156, 127.0f / 64);  // k = 6, so that these are the largest bytes
  theta.back() = 1e30f;
  Rows rows(text, 1, {0}, theta);
  const std::vector<uint8_t> white(4 * 33155, 255);
  const double largest = 33155.0 * 255 * 127 + (1 << 30);
  CHECK_EQ(rows.Check({0, -1, -1, -1}, white)[0], static_cast<float>(largest / 255 / 64));
  CHECK_EQ(rows.Check({0, 0, 0, 0}, white)[2], static_cast<float>(largest / 255 / 64));
  // The largest possible number of taps, with one channel in every word.
  const std::string image = "input uint8 349 95 1; conv 2 349 95 1 valid 1; relu; dense 1 1";
  Rows conv(image, 1, {0}, Weights(Network::Parse(image), 1, 3));
  CHECK(Varied(conv.Check({0, 0}, Observations(conv.network, 2, 4))));
}

TEST(ObservationsAnywhereInMemory) {
  for (const char* text : {"input uint8 6 6 4; conv 3 3 3 1 same 1; relu; dense 3 1", "input uint8 32; dense 3 1"}) {
    const Network network = Network::Parse(text);
    Rows rows(text, 2, {0, 1}, Weights(network, 2, 1));
    for (int64_t shift : {0, 1, 4, 8, 16}) rows.Check({1, 0, 1}, Observations(network, 3, 2), shift);
  }
}

TEST(QuantizedRowsDoNotDependOnWhatIsQuantizedWithThem) {
  const std::string text = "input uint8 12 12 3; conv 5 3 3 2 same 1; bias; relu; dense 70 1; bias; relu; dense 3 1";
  const Network network = Network::Parse(text);
  const int64_t live = 300;  // more rows than a single launch uploads
  const std::vector<float> thetas = Weights(network, live, 9);
  Rows all(text, live, Range(live), thetas);
  for (int64_t row : {int64_t{0}, int64_t{133}, live - 1}) {
    const auto theta = thetas.begin() + row * network.dimension();
    Rows one(text, 1, {0}, std::vector<float>(theta, theta + network.dimension()));
    const auto observation = Observations(network, 1, 4);
    const std::vector<float> out = one.Check({0}, observation), again = all.Check({row}, observation);
    for (size_t i = 0; i < out.size(); ++i) CHECK_EQ(ToBits(out[i]), ToBits(again[i]));
  }
}

TEST(NetworksOfAtari) {
  for (const char* text : {kLargeModel, kModel}) {
    const Network network = Network::Parse(text);
    Rows rows(text, 4, {0, 2, 3}, Weights(network, 3, 11));
    CHECK(Varied(rows.Check({3, -1, 0}, Observations(network, 3, 12))));
    CHECK(Varied(rows.Check({2, 2, 0, 2, 2}, Screens(network, 5, 13))));
  }
}

TEST(WhatCannotBeIntegersIsRefused) {
  CHECK_THROWS(cuda::CudaInt8Network(Network::Parse("input uint8 4; dense 3 1; tanh; dense 2 1"), 3),
               "network 3 cannot be evaluated as int8: layer 2 'tanh'");
}
