#include "envs/behaviour_record.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace neuroevo {

BehaviourPlan::BehaviourPlan(const EnvSpec& spec, int64_t every, int64_t samples)
    : every(every), samples(every == 0 ? 1 : samples), size(spec.behaviour_bytes()) {
  if (every < 0) ThrowInvalid("every is ", every, ", expected 0 (at the end) or a number of steps");
  const int64_t most = kMaxBytes / std::max<int64_t>(size, 1);
  if (samples < 1 || this->samples > most) {
    ThrowInvalid("samples is ", samples, ", expected 1 to ", most, " of ", size, " bytes each");
  }
}

void BehaviourRecord::Start(const BehaviourPlan& plan) {
  written_ = steps_ = 0;
  if (plan.every > 0) samples_.resize(plan.bytes());
}

void BehaviourRecord::Write(const BehaviourPlan& plan, const Env& env) {
  env.Behaviour(samples_.data() + written_ * plan.size);
  ++written_;
}

std::vector<uint8_t> BehaviourRecord::Finish(const BehaviourPlan& plan, const Env& env, bool failed) {
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
