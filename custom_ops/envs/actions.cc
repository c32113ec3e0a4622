#include "envs/actions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace neuroevo {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

bool Bounded(const EnvSpec& spec, int64_t action) {
  return std::isfinite(spec.action_high[action] - spec.action_low[action]);  // also false if the difference overflows
}

float Scaled(float x, float low, float high) {
  const float clipped = x < -1 ? -1 : x > 1 ? 1 : x;  // NaN stays NaN
  return low + (clipped + 1) / 2 * (high - low);
}

float OfBins(const float* outputs, int64_t bins, float low, float high) {
  if (std::all_of(outputs, outputs + bins, [](float x) { return std::isnan(x); })) return kNan;
  int32_t best;
  ArgMax(outputs, 1, bins, &best);
  return low + static_cast<float>(best) * (high - low) / static_cast<float>(bins - 1);
}

}  // namespace

void CheckOutputs(const EnvSpec& spec, int64_t width) {
  const int64_t n = spec.num_actions;
  if (spec.discrete()) {
    if (width != n) ThrowInvalid("the networks have ", width, " outputs, expected one per action: ", n);
    return;
  }
  if (width < n || width % n != 0) {
    ThrowInvalid("the networks have ", width, " outputs, expected one per action: ", n,
                 ", or 2 or more bins per action: a multiple of ", n);
  }
  if (width == n) return;
  for (int64_t a = 0; a < n; ++a) {
    if (Bounded(spec, a)) continue;
    ThrowInvalid("action[", a, "] has bounds ", spec.action_low[a], " and ", spec.action_high[a],
                 ", expected finite bounds for its ", width / n, " bins");
  }
}

void ToActions(const EnvSpec& spec, const float* outputs, int64_t k, int64_t width, void* actions) {
  if (spec.discrete()) return ArgMax(outputs, k, width, static_cast<int32_t*>(actions));
  const int64_t n = spec.num_actions, bins = width / n;
  auto* out = static_cast<float*>(actions);
  for (int64_t i = 0; i < k * n; ++i) {
    const int64_t a = i % n;
    const float low = spec.action_low[a], high = spec.action_high[a];
    const float* x = outputs + i * bins;
    out[i] = bins > 1 ? OfBins(x, bins, low, high) : Bounded(spec, a) ? Scaled(*x, low, high) : *x;
  }
}

void ArgMax(const float* outputs, int64_t n, int64_t size, int32_t* actions) {
  for (int64_t i = 0; i < n; ++i) {
    const float* row = outputs + i * size;
    int32_t best = 0;
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t a = 0; a < size; ++a) {
      if (row[a] > most) {
        most = row[a];
        best = static_cast<int32_t>(a);
      }
    }
    actions[i] = best;
  }
}

std::string ActionFailure(const float* action, int64_t n) {
  for (int64_t a = 0; a < n; ++a) {
    if (std::isfinite(action[a])) continue;
    // Formatted explicitly, since some NaN print as "-nan".
    const char* what = std::isnan(action[a]) ? "nan" : action[a] > 0 ? "inf" : "-inf";
    return Concat("action[", a, "] is ", what, ", expected a finite number");
  }
  return "";
}

}  // namespace neuroevo
