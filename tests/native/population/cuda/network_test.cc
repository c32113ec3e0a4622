// The GPU's float32 networks, emulated on the CPU, are bit-identical to the reference backend: all kinds of layers, odd
// sizes, shared and single rows, and any other slots in the call.
#include "population/cuda/float32/network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/noise.h"
#include "native/check.h"
#include "population/cuda/call.h"
#include "population/population.h"

using namespace neuroevo;
using cuda::Activation;
using cuda::CallSlots;
using cuda::CudaNetwork;
using cuda::Step;

namespace {

const char kLargeModel[] =
    "input uint8 84 84 4; conv 32 8 8 4 same 1.0; bias; relu; conv 64 4 4 2 same 1.0; bias; relu; "
    "conv 64 3 3 1 same 1.0; bias; relu; dense 512 1.0; bias; relu; dense 18 0.1; bias";
const char kModel[] =
    "input uint8 84 84 4; conv 16 8 8 4 same 1.0; bias; relu; conv 32 4 4 2 same 1.0; bias; relu; "
    "dense 256 1.0; bias; relu; dense 18 0.1; bias";

constexpr uint32_t kUnwritten = 0xffffffffu;  // initial content of device memory, a NaN

std::vector<uint32_t> Bits(const float* values, int64_t n) {
  std::vector<uint32_t> bits(n);
  memcpy(bits.data(), values, n * sizeof(float));
  return bits;
}

// A network, rows of weights, some of which are dead, and observations, with the outputs of the reference.
class Case {
 public:
  // theta_gap: floats between two rows' weights. These and the unused rows and slots are NaN.
  Case(const std::string& text, int64_t rows, int64_t slots, int64_t theta_gap = 0)
      : network_(Network::Parse(text)),
        rows_(rows),
        slots_(slots),
        stride_(network_.dimension() + theta_gap),
        thetas_(rows * network_.dimension()),
        values_(slots * network_.input_size()),
        cuda_(network_) {
    for (int64_t row = 0; row < rows; ++row) {
      float* theta = &thetas_[row * network_.dimension()];
      for (const Layer& layer : network_.layers()) {
        const float scale = layer.init_scale == 0 ? 0.3f : layer.init_scale;
        for (int64_t i = layer.offset; i < layer.offset + layer.weights; ++i) theta[i] = scale * Noise(row + 1, i);
      }
    }
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = std::max(0.0f, Noise(99, i));
  }

  const Network& network() const { return network_; }
  float& value(int64_t slot, int64_t i) { return values_[slot * network_.input_size() + i]; }

  // Evaluates the pairs of slot and row and compares the outputs with the reference.
  void Check(std::vector<std::pair<int, int>> row_of_slot) const {
    const std::vector<float> out = Forward(row_of_slot);
    const std::vector<float> expected = Reference(row_of_slot);
    const int64_t a = network_.output_size();
    std::vector<bool> played(slots_);
    for (size_t i = 0; i < row_of_slot.size(); ++i) {
      const int slot = row_of_slot[i].first;
      played[slot] = true;
      CHECK_EQ(Bits(&out[slot * a], a), Bits(&expected[i * a], a));
    }
    for (int64_t slot = 0; slot < slots_ + 1; ++slot) {
      if (slot < slots_ && played[slot]) continue;
      for (int64_t i = 0; i < a; ++i) CHECK_EQ(ToBits(out[slot * a + i]), kUnwritten);
    }
  }

  // Returns the outputs of all slots, and of one slot past the end.
  std::vector<float> Forward(std::vector<std::pair<int, int>> row_of_slot) const {
    std::sort(row_of_slot.begin(), row_of_slot.end(),
              [](const auto& a, const auto& b) { return std::pair(a.second, a.first) < std::pair(b.second, b.first); });
    CallSlots call;
    const int64_t d = network_.dimension(), n = network_.input_size(), a = network_.output_size();
    const bool bytes = network_.input_dtype() == DType::kUint8;
    const device::Memory thetas(device::Where::kDevice, rows_ * stride_ * 4);
    const device::Memory observations(device::Where::kDevice, slots_ * n * (bytes ? 1 : 4));
    for (const auto& [slot, row] : row_of_slot) {
      call.slots.push_back(slot);
      call.rows.push_back(row);
      memcpy(thetas.data() + row * stride_ * 4, &thetas_[row * d], d * 4);
      for (int64_t i = slot * n; i < (slot + 1) * n; ++i) {
        if (bytes) {
          reinterpret_cast<uint8_t*>(observations.data())[i] = Byte(values_[i]);
        } else {
          reinterpret_cast<float*>(observations.data())[i] = values_[i];
        }
      }
    }
    const device::Memory outputs(device::Where::kDevice, (slots_ + 1) * a * 4);
    const int64_t workspace_bytes = cuda_.WorkspaceBytes(call.count());
    const device::Memory workspace(device::Where::kDevice, workspace_bytes + 256);
    cuda_.Forward(reinterpret_cast<const float*>(thetas.data()), stride_, call, observations.data(), cuda::States(),
                  reinterpret_cast<float*>(outputs.data()), workspace.data(), nullptr);
    const float* got = reinterpret_cast<const float*>(outputs.data());
    const uint32_t* behind = reinterpret_cast<const uint32_t*>(workspace.data() + workspace_bytes);
    CHECK(std::all_of(behind, behind + 64, [](uint32_t word) { return word == kUnwritten; }));
    return std::vector<float>(got, got + (slots_ + 1) * a);
  }

 private:
  static uint8_t Byte(float value) { return static_cast<uint8_t>(std::min(255.0f, value * 80)); }

  std::vector<float> Reference(const std::vector<std::pair<int, int>>& row_of_slot) const {
    const auto population = Population::Make("reference", {network_}, rows_, std::make_shared<ThreadPool>(2));
    std::vector<int64_t> live, rows;
    for (const auto& [slot, row] : row_of_slot) {
      rows.push_back(row);
      if (std::find(live.begin(), live.end(), row) == live.end()) live.push_back(row);
    }
    std::vector<float> thetas;
    for (int64_t row : live) {
      const float* theta = &thetas_[row * network_.dimension()];
      thetas.insert(thetas.end(), theta, theta + network_.dimension());
    }
    population->Assign(live, std::vector<int32_t>(live.size(), 0), thetas.data(), network_.dimension());
    std::vector<float> floats;
    std::vector<uint8_t> bytes;
    const int64_t n = network_.input_size();
    for (const auto& [slot, row] : row_of_slot) {
      for (int64_t i = slot * n; i < (slot + 1) * n; ++i) {
        floats.push_back(values_[i]);
        bytes.push_back(Byte(values_[i]));
      }
    }
    std::vector<float> out(rows.size() * network_.output_size());
    const bool is_bytes = network_.input_dtype() == DType::kUint8;
    population->Forward(rows, is_bytes ? static_cast<const void*>(bytes.data()) : floats.data(), out.data());
    return out;
  }

  Network network_;
  int64_t rows_, slots_, stride_;
  std::vector<float> thetas_;  // [rows, D]
  std::vector<float> values_;  // [slots, ...]
  CudaNetwork cuda_;
};

// The i-th slot of every list is 3 i + 1, so that slots 0, 2, 3, ... are unused.
std::vector<std::pair<int, int>> Slots(const std::vector<int>& rows) {
  std::vector<std::pair<int, int>> slots;
  for (int row : rows) slots.push_back({static_cast<int>(3 * slots.size() + 1), row});
  return slots;
}

void CheckNetwork(const std::string& text, const std::vector<int>& rows, int64_t theta_gap = 0) {
  try {
    const int row_count = *std::max_element(rows.begin(), rows.end()) + 2;
    Case(text, row_count, 3 * static_cast<int64_t>(rows.size()) + 1, theta_gap).Check(Slots(rows));
  } catch (const std::exception& error) {
    check::Fail(__FILE__, __LINE__, "'" + text + "': " + error.what());
  }
}

// Rows of the slots, without and with runs of equal rows; all other rows are dead.
const std::vector<int> kAlone = {3, 0, 2};
const std::vector<int> kMixed = {5, 0, 0, 2, 6, 6, 6, 6, 6, 8, 8};

}  // namespace

TEST(StepsFuseWhatFollows) {
  const auto kinds = [](const std::string& text) {
    std::string all;
    for (const Step& step : cuda::StepsOf(Network::Parse(text))) {
      all += "cdnplry"[static_cast<int>(step.kind)];
      if (step.vbn >= 0) all += "v" + std::to_string(step.vbn);
      if (step.bias >= 0) all += "b" + std::to_string(step.bias);
      if (step.activation != Activation::kNone) all += " rtksg"[static_cast<int>(step.activation)];
      all += " ";
    }
    return all;
  };
  CHECK_EQ(kinds(kLargeModel), "cb8192r cb40992r cb77920r db4042912r db4052640 ");
  CHECK_EQ(kinds("input float32 3; dense 2 1"), "d ");
  CHECK_EQ(kinds("input float32 3; vbn; dense 2 1; vbn; bias; relu; vbn; bias; vbn"), "nv10 dv16b6r nv20b8 nv24 ");
  CHECK_EQ(kinds("input uint8 3; dense 2 1; tanh"), "n dt ");
  CHECK_EQ(kinds("input uint8 3; bias; relu; dense 2 1; relu; bias; bias; tanh; relu"), "nb0r dr nb9 nb11t nr ");
  CHECK_EQ(kinds("input uint8 3; dense 2 1; silu; bias; tanh; layer_norm; bias; gelu; relu"),
           "n d ns nb6t l nb8 ng nr ");
  CHECK_EQ(kinds("input uint8 4 4 1; max_pool 2 2 2 same; relu; leaky_relu 0.1; lstm 2 1; tanh"),
           "n p nr nk r db48 y nt ");
  CHECK_EQ(kinds("input float32 4 4 1; relu; relu; bias; conv 2 1 1 1 same 1; bias"), "nr nr nb0 cb3 ");
}

TEST(LayersOfAllKindsAreTheReference) {
  for (const std::string text : {
           "input float32 1; dense 1 1",
           "input float32 17; dense 5 1; tanh; dense 3 1; bias",
           "input float32 376; dense 256 1; bias; tanh; dense 256 1; bias; relu; dense 17 1; bias; tanh",
           "input float32 33; bias; relu; dense 31 1; tanh; bias; relu; dense 47 1; relu; bias; dense 129 1",
           "input float32 64; dense 513 1; bias; relu; dense 512 1; bias; tanh; dense 1 1",
           "input float32 4 6; bias; tanh; dense 100 1; bias; relu; relu; dense 2 1",
           "input float32 5; relu; bias",
           "input uint8 300; bias; bias; tanh; tanh",
           "input uint8 50; dense 20 1; bias; relu; dense 4 1",
           "input float32 7 10 3; conv 5 3 2 2 same 1; bias; tanh; conv 19 2 3 1 valid 1; relu; dense 9 1; bias",
           "input float32 9 9 1; conv 17 2 2 3 same 1; bias; relu; conv 33 3 3 2 same 1; dense 1 1",
           "input float32 13 29 2; conv 40 5 3 1 same 1; bias; relu; conv 3 3 5 2 valid 1; bias",
           "input float32 2 3 1; conv 70 5 7 1 same 1; tanh; bias; relu; conv 16 1 1 1 valid 1; dense 4 1",
           "input float32 6 30 2; relu; bias; conv 32 1 4 1 valid 1; bias; conv 65 2 2 2 same 1; bias; relu; dense 8 1",
           "input float32 20 20 3; conv 8 3 3 7 valid 1; dense 3 1",
           "input float32 5 4 2; conv 3 1 1 200000000 same 1; bias",
           "input float32 11 10 5; conv 1 2 2 1 same 1; bias; conv 18 4 3 4 same 1; bias; tanh",
           "input float32 12 9 8; conv 64 3 3 1 same 1; bias; relu; conv 64 2 3 3 valid 1; tanh; dense 18 1; bias",
           "input uint8 19 23 4; conv 12 8 8 4 same 1; bias; relu; dense 64 1; relu; dense 6 1",
           "input uint8 10 11 3; conv 18 4 3 2 same 1; bias; relu; conv 70 3 3 1 same 1; bias; dense 5 1",
           "input float32 8 9 5; max_pool 3 2 2 same; bias; leaky_relu 0.2; avg_pool 2 3 1 same; silu; dense 7 1; gelu",
           "input float32 7 6 3; conv 21 3 3 1 same 1; bias; gelu; max_pool 2 2 2 valid; layer_norm; conv 9 2 2 1 "
           "valid 1; "
           "silu; avg_pool 2 1 3 same; leaky_relu 0; dense 3 1",
           "input float32 37; layer_norm; bias; dense 33 1; layer_norm; silu; dense 5 1; leaky_relu 1.5; bias",
           "input uint8 11 12 3; max_pool 5 4 3 valid; conv 6 2 2 1 same 1; layer_norm; gelu; dense 4 1",
           "input uint8 6; layer_norm; silu; bias; relu",
           "input uint8 3 2 1; conv 33 5 5 1 same 1; bias; relu",
           "input uint8 12 12 8; conv 64 3 3 3 valid 1; relu; conv 33 2 2 1 same 1; bias; tanh; dense 3 1",
       }) {
    CheckNetwork(text, kAlone);
    CheckNetwork(text, kMixed, 5);
  }
}

TEST(ManySlotsTakeLargeTiles) {
  std::vector<int> distinct, one(70, 1), mixed;
  for (int i = 0; i < 70; ++i) distinct.push_back(i * 37 % 70);
  for (int i = 0; i < 67; ++i) mixed.push_back(i % 3 == 0 ? 100 - i : i % 4 == 0 ? 7 : 11);
  for (const std::string text : {
           "input float32 70; dense 66 1; bias; relu; dense 100 1; bias; relu; dense 18 0.1; bias",
           "input uint8 9 9 4; conv 32 4 4 2 same 1; bias; relu; conv 64 2 2 1 same 1; bias; relu; dense 64 1; bias",
           "input uint8 10 8 3; conv 20 4 3 1 same 1; bias; tanh; conv 70 3 3 2 same 1; relu; dense 3 1; bias",
       }) {
    CheckNetwork(text, distinct);
    CheckNetwork(text, one, 3);
    CheckNetwork(text, mixed, 4);
    for (int n : {7, 15, 16, 32, 33, 48, 49}) CheckNetwork(text, std::vector<int>(n, 1));
  }
}

TEST(ASlotsResultDoesNotDependOnTheOthers) {
  const int slots = 60;
  const Case one("input uint8 14 15 4; conv 32 4 4 2 same 1; bias; relu; conv 64 3 3 1 same 1; relu; dense 40 1; bias",
                 3, slots);
  const int64_t a = one.network().output_size();
  std::vector<std::pair<int, int>> all;
  for (int slot = 0; slot < slots; ++slot) all.push_back({slot, slot < 40 ? 0 : 1 + slot % 2});
  const std::vector<float> together = one.Forward(all);
  for (size_t step : {1, 2, 7, 23}) {
    std::vector<std::pair<int, int>> some;
    for (size_t slot = step / 2; slot < all.size(); slot += step) some.push_back(all[slot]);
    const std::vector<float> out = one.Forward(some);
    for (const auto& [slot, row] : some) CHECK_EQ(Bits(&out[slot * a], a), Bits(&together[slot * a], a));
  }
}

TEST(AnEmptyCallDoesNothing) {
  const std::vector<float> out = Case("input float32 3; dense 2 1", 1, 1).Forward({});
  for (float value : out) CHECK_EQ(ToBits(value), kUnwritten);
}

TEST(RandomListsAreTheReference) {
  for (int round = 0; round < 12; ++round) {
    int drawn = 0;
    const auto random = [&](int bound) { return static_cast<int>(std::abs(Noise(round, drawn++)) * 1000) % bound; };
    const int width = random(40) + 1, units = random(90) + 1, rows = random(30) + 1, slots = random(70) + 1;
    const Case one("input float32 " + std::to_string(width) + "; dense " + std::to_string(units) +
                       " 1; bias; relu; dense 4 1; bias",
                   rows, slots, random(5));
    std::vector<std::pair<int, int>> some;
    for (int slot = 0; slot < slots; ++slot) {
      if (random(3) > 0) some.push_back({slot, random(rows)});
    }
    one.Check(some);
  }
}

TEST(InfiniteInputsStayInTheirWindows) {
  for (const std::string text :
       {"input float32 5 5 3; conv 4 2 2 1 same 1; bias", "input float32 6 5 4; conv 33 1 1 1 valid 1"}) {
    Case one(text, 2, 9);
    for (int i : {0, 17, 61}) one.value(3, i) = std::numeric_limits<float>::infinity();
    one.Check({{3, 0}, {4, 0}, {7, 1}});
  }
}

TEST(ReluOfNanAndOfMinusZeroIsZero) {
  const float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const float kSmallest = std::numeric_limits<float>::denorm_min();
  for (const std::string text : {"input float32 6; relu; bias", "input float32 6; dense 35 1; relu",
                                 "input float32 2 3 1; conv 5 1 2 1 same 1; bias; relu"}) {
    Case one(text, 2, 4);
    const float values[2][6] = {{kNan, -0.0f, -kInf, kInf, kSmallest, -kSmallest}, {kInf, -0.0f, 0, -1, 1, -kSmallest}};
    for (int64_t i = 0; i < 6; ++i) one.value(1, i) = values[0][i], one.value(2, i) = values[1][i];
    one.Check({{0, 0}, {1, 0}, {2, 1}});
  }
}

TEST(MoreSlotsThanAGridIsHigh) {
  const int slots = 70000;
  const Case one("input float32 1 1 2; conv 1 1 1 1 same 1; dense 1 1; relu", 2, slots);
  std::vector<std::pair<int, int>> all;
  for (int slot = 0; slot < slots; ++slot) all.push_back({slot, slot % 2});
  const std::vector<float> out = one.Forward(all), last = one.Forward({all.back()});
  CHECK(std::none_of(out.begin(), out.end() - 1, [](float value) { return std::isnan(value); }));
  CHECK_EQ(out[slots - 1], last[slots - 1]);
}

TEST(TheNetworksOfAtariAreTheReference) {
  CheckNetwork(kLargeModel, {0, 2});
  CheckNetwork(kModel, {0, 0, 2, 0});
}

TEST(GraphsAreRefused) {
  CHECK_THROWS(cuda::StepsOf(Network::Parse("input float32 2; dense 3 1; graph 1 1 1 0>3")), "has a graph layer");
}
