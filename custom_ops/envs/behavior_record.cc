#include "envs/behavior_record.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace neuroevo {

BehaviorPlan::BehaviorPlan(const EnvSpec& spec, int64_t every, int64_t samples)
    : every(every), samples(every == 0 ? 1 : samples), size(spec.behavior_bytes()) {
  if (every < 0) ThrowInvalid("every is ", every, ", expected 0 (at the end) or a number of steps");
  const int64_t most = kMaxBytes / std::max<int64_t>(size, 1);
  if (samples < 1 || this->samples > most) {
    ThrowInvalid("samples is ", samples, ", expected 1 to ", most, " of ", size, " bytes each");
  }
}

void BehaviorRecord::Start(const BehaviorPlan& plan) {
  written_ = steps_ = 0;
  if (plan.every > 0) samples_.resize(plan.bytes());
}

void BehaviorRecord::Write(const BehaviorPlan& plan, const Env& env) {
  env.Behavior(samples_.data() + written_ * plan.size);
  ++written_;
}

std::vector<uint8_t> BehaviorRecord::Finish(const BehaviorPlan& plan, const Env& env, bool failed) {
  samples_.resize(plan.bytes());
  if (failed) {
    std::fill(samples_.begin(), samples_.end(), 0);
  } else if (written_ < plan.samples) {
    const auto last = samples_.begin() + written_ * plan.size;
    Write(plan, env);
    for (auto next = last + plan.size; next != samples_.end(); next += plan.size) std::copy_n(last, plan.size, next);
  }
  return std::exchange(samples_, {});
}

}  // namespace neuroevo
