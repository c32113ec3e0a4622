// The policy: actions from outputs, by hand.
#include "envs/actions.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "native/check.h"

using namespace neuroevo;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

EnvSpec Discrete(int64_t num_actions) {
  EnvSpec spec;
  spec.num_actions = num_actions;
  return spec;
}

EnvSpec Vector(const std::vector<float>& low, const std::vector<float>& high) {
  EnvSpec spec;
  spec.action_dtype = DType::kFloat32;
  spec.num_actions = static_cast<int64_t>(low.size());
  spec.action_low = low;
  spec.action_high = high;
  return spec;
}

std::vector<int32_t> Indices(const std::vector<float>& outputs, int64_t size) {
  const int64_t k = static_cast<int64_t>(outputs.size()) / size;
  std::vector<int32_t> actions(k, -1);
  ToActions(Discrete(size), outputs.data(), k, size, actions.data());
  return actions;
}

std::vector<float> Numbers(const EnvSpec& spec, const std::vector<float>& outputs, int64_t k) {
  const int64_t width = static_cast<int64_t>(outputs.size()) / k;
  CheckOutputs(spec, width);
  std::vector<float> actions(k * spec.num_actions, -99);
  ToActions(spec, outputs.data(), k, width, actions.data());
  return actions;
}

}  // namespace

TEST(FirstOfEqualMaxima) {
  CHECK_EQ(Indices({1, 3, 3, 2, -1, -1, -1, -2, 0, 1, 2, 3}, 4), (std::vector<int32_t>{1, 0, 3}));
  // As tf.argmax.
  CHECK_EQ(Indices({kNan, 1, 2, kNan, kNan, kNan, kNan, kNan, -kInf, -kInf, kNan, -kInf}, 4),
           (std::vector<int32_t>{2, 0, 0}));
  CHECK_EQ(Indices({5, -5}, 1), (std::vector<int32_t>{0, 0}));
  CHECK_EQ(Indices({}, 4).size(), 0);
}

TEST(OneNumberPerAction) {
  const EnvSpec spec = Vector({-1, -3, 0, -kInf, -1}, {1, 3, 4, 2, kInf});
  CHECK_EQ(Numbers(spec, {0.5f, -1, 1, 7, -7, 2, -kInf, -0.5f, -9, 9}, 2),
           (std::vector<float>{0.5f, -3, 4, 7, -7, 1, -3, 1, -9, 9}));
  CHECK_EQ(Numbers(Vector({-3e38f}, {3e38f}), {7}, 1), (std::vector<float>{7}));  // too far apart to scale
  const std::vector<float> strange = Numbers(spec, {kNan, kInf, kNan, kInf, kNan}, 1);
  CHECK(std::isnan(strange[0]) && std::isnan(strange[2]) && std::isnan(strange[4]));
  CHECK_EQ(strange[1], 3);
  CHECK_EQ(strange[3], kInf);  // its failure, later
}

TEST(Bins) {
  const EnvSpec spec = Vector({-1, 0}, {1, 4});
  CHECK_EQ(Numbers(spec, {1, 2, 3, 3, 2, 1, 5, 5, 0, kNan, -kInf, kNan}, 2), (std::vector<float>{1, 0, -1, 0}));
  CHECK_EQ(Numbers(spec, {0, 1, 1, 0}, 1), (std::vector<float>{1, 0}));  // two bins: the bounds
  CHECK_EQ(Numbers(spec, {0, 0, 9, 0, 0, 0, 0, 0, 9, 0}, 1), (std::vector<float>{0, 3}));
  const std::vector<float> lost = Numbers(spec, {kNan, kNan, kNan, kNan, 1, kNan}, 1);
  CHECK(std::isnan(lost[0]));
  CHECK_EQ(lost[1], 2);  // it has one output to go by
}

TEST(WrongWidths) {
  for (int64_t width : {0, 2, 4, 6}) {
    CHECK_THROWS(CheckOutputs(Discrete(3), width),
                 "the networks have " + std::to_string(width) + " outputs, expected one per action: 3");
  }
  CheckOutputs(Discrete(3), 3);
  const EnvSpec spec = Vector({-1, -1, -1}, {1, kInf, 1});
  for (int64_t width : {0, 1, 2, 4, 5, 7}) {
    CHECK_THROWS(CheckOutputs(spec, width),
                 "the networks have " + std::to_string(width) +
                     " outputs, expected one per action: 3, or 2 or more bins per action: a multiple of 3");
  }
  CheckOutputs(spec, 3);
  CHECK_THROWS(CheckOutputs(spec, 6), "action[1] has bounds -1 and inf, expected finite bounds for its 2 bins");
  CheckOutputs(Vector({-1, -1}, {1, 1}), 10);
}

TEST(FailuresOfActions) {
  const auto failure = [](const std::vector<float>& action) {
    return ActionFailure(action.data(), static_cast<int64_t>(action.size()));
  };
  CHECK_EQ(failure({1, -1e30f, 0}), "");
  CHECK_EQ(failure({}), "");
  CHECK_EQ(failure({1, 2, kNan, kInf}), "action[2] is nan, expected a finite number");
  CHECK_EQ(failure({-kNan}), "action[0] is nan, expected a finite number");
  CHECK_EQ(failure({1, kInf}), "action[1] is inf, expected a finite number");
  CHECK_EQ(failure({-kInf}), "action[0] is -inf, expected a finite number");
}
