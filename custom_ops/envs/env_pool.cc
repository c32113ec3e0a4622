#include "envs/env_pool.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/floating_point.h"
#include "core/memory.h"
#include "core/trace.h"
#include "envs/actions.h"

namespace neuroevo {
namespace {

constexpr int64_t kCopiesPerTask = 8;  // of behaviors, screens and states

int64_t FirstOf(const std::vector<int64_t>& slots) { return slots.empty() ? -1 : slots.front(); }

void CheckSameLength(const char* what, size_t length, size_t slots) {
  if (length != slots) ThrowInvalid(what, " has ", length, " values, expected one per slot: ", slots);
}

// Return whether the last step truncated the episode without terminating it.
bool CutOff(const EpisodeInfo* info) {
  if (!info) return false;
  const EpisodeInfo::End end = info->HowItEnded();
  return end.truncated && !end.terminated;
}

}  // namespace

EnvPool::EnvPool(const std::string& family, const EnvOptions& options, int64_t slots, std::shared_ptr<ThreadPool> pool)
    : pool_(std::move(pool)) {
  if (slots < 1 || slots > kMaxSlots) ThrowInvalid("number of slots is ", slots, ", expected 1 to ", kMaxSlots);
  factory_ = MakeEnvFactory(family, options);
  for (const auto& bounds : {spec().action_low, spec().action_high}) {
    if (spec().discrete() || static_cast<int64_t>(bounds.size()) == spec().num_actions) continue;
    ThrowInvalid("family '", family, "' has ", bounds.size(), " bounds of actions, expected ", spec().num_actions);
  }
  CheckMemory(Concat(slots, " environments of family '", family, "'"), slots * spec().memory);
  slots_ = std::vector<Slot>(slots);
  for (Slot& slot : slots_) {
    slot.env = factory_->Make();
    slot.info = dynamic_cast<const EpisodeInfo*>(slot.env.get());
  }
}

class EnvPool::Hold {
 public:
  Hold(std::vector<Slot>* all, const std::vector<int64_t>& slots) : all_(all), slots_(slots) {
    for (int64_t slot : slots) CheckIndex("slot", slot, static_cast<int64_t>(all->size()));
    for (; held_ < slots.size(); ++held_) {
      const int64_t slot = slots[held_];
      if (!(*all)[slot].busy.exchange(true)) continue;
      // Busy: either an earlier entry of this call holds the slot, or another call does.
      const bool twice = std::find(slots.begin(), slots.begin() + held_, slot) != slots.begin() + held_;
      Release();
      if (twice) ThrowInvalid("slot ", slot, " occurs more than once in one call, expected different slots");
      ThrowInvalid("slot ", slot, " is in use by another call");
    }
  }
  ~Hold() { Release(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  void Release() {
    while (held_ > 0) (*all_)[slots_[--held_]].busy.store(false, std::memory_order_release);
  }

  std::vector<Slot>* all_;
  const std::vector<int64_t>& slots_;
  size_t held_ = 0;
};

template <class Check, class Body>
void EnvPool::Run(const std::vector<int64_t>& slots, Check check, int64_t per_task, Body body) {
  const Hold hold(&slots_, slots);
  for (size_t k = 0; k < slots.size(); ++k) check(k, slots[k], slots_[slots[k]]);
  const auto run = [&](int64_t k) { body(k, slots_[slots[k]]); };
  pool_->ParallelFor(static_cast<int64_t>(slots.size()), per_task, std::ref(run));
}

void EnvPool::Reset(const std::vector<int64_t>& slots, const std::vector<uint64_t>& seeds,
                    const std::vector<int64_t>& max_frames, const std::vector<int64_t>& normalizers) {
  const trace::Scope scope("reset", FirstOf(slots));
  CheckSameLength("seeds", seeds.size(), slots.size());
  CheckSameLength("max_frames", max_frames.size(), slots.size());
  if (!normalizers.empty()) CheckSameLength("normalizers", normalizers.size(), slots.size());
  const auto found = normalizers_.Find(normalizers);
  auto check = [&](size_t k, int64_t slot, const Slot&) {
    if (max_frames[k] < 0) ThrowInvalid("max_frames of slot ", slot, " is ", max_frames[k], ", expected 0 or more");
  };
  auto body = [&](int64_t k, Slot& slot) {
    slot.started = slot.live = false;  // remains false if the environment throws
    if (std::exchange(slot.ended, false)) slot.end = {};
    slot.failure.clear();
    slot.env->Reset(seeds[k], max_frames[k]);
    if (plan_.records()) slot.behaviors.Start(plan_);
    slot.normalizer = found.empty() ? nullptr : found[k];
    if (slot.normalizer) slot.sums.Start(slot.normalizer->size());
    slot.started = slot.live = true;
  };
  Run(slots, check, spec().steps_per_task, body);
}

void EnvPool::Actions(const float* outputs, int64_t k, int64_t width, void* actions) const {
  if (k < 0) ThrowInvalid("number of networks is ", k, ", expected 0 or more");
  CheckOutputs(spec(), width);
  const DefaultFloatingPoint rules;  // set here because this is too little work for the pool, whose tasks set them
  ToActions(spec(), outputs, k, width, actions);
}

void EnvPool::Step(const std::vector<int64_t>& slots, const void* actions, double* rewards, bool* dones,
                   bool* truncations) {
  const trace::Scope scope("step", FirstOf(slots));
  const EnvSpec& spec = this->spec();
  auto check = [&](size_t k, int64_t index, const Slot& slot) {
    if (!slot.live) ThrowInvalid("slot ", index, " is not live: its episode is over or it was never reset");
    if (!spec.discrete()) return;
    const int32_t action = static_cast<const int32_t*>(actions)[k];
    if (action < 0 || action >= spec.num_actions) {
      throw Error(Error::Kind::kOutOfRange,
                  Concat("action ", action, " of slot ", index, " is out of range [0, ", spec.num_actions, ")"));
    }
  };
  auto body = [&](int64_t k, Slot& slot) {
    const void* action = static_cast<const char*>(actions) + k * spec.action_bytes();
    slot.live = false;  // remains false if the environment throws
    if (!spec.discrete()) slot.failure = ActionFailure(static_cast<const float*>(action), spec.num_actions);
    const StepResult result = slot.failure.empty() ? slot.env->Step(action) : StepResult{0, true};
    rewards[k] = result.reward;
    dones[k] = result.done;
    if (truncations) truncations[k] = slot.failure.empty() && CutOff(slot.info);
    if (result.done) {
      NoteEnd(&slot);
    } else {
      if (plan_.every > 0) slot.behaviors.Add(plan_, *slot.env);
      slot.live = true;
    }
  };
  Run(slots, check, spec.steps_per_task, body);
}

template <class Write>
void EnvPool::CopyOut(const char* what, const std::vector<int64_t>& slots, void* out, int64_t bytes, Write write,
                      int64_t per_task) {
  auto check = [what](size_t, int64_t index, const Slot& slot) {
    if (!slot.started) ThrowInvalid("slot ", index, " has no ", what, ": it was never reset");
  };
  auto body = [out, bytes, write](int64_t k, Slot& slot) { write(*slot.env, static_cast<char*>(out) + k * bytes); };
  Run(slots, check, per_task, body);
}

void EnvPool::Observe(const std::vector<int64_t>& slots, void* out) {
  const trace::Scope scope("observe", FirstOf(slots), out);
  auto write = [](const Env& env, void* one) { env.Observe(one); };
  CopyOut("observation", slots, out, spec().observation_bytes(), write, spec().observations_per_task);
}

int64_t EnvPool::ObservationSize() const {
  const DType dtype = spec().observation_dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
    ThrowInvalid("the environment's observations are ", NameOf(dtype), ", expected float32 or float64 to normalize");
  }
  return spec().observation_bytes() / static_cast<int64_t>(SizeOf(dtype));
}

template <class T>
void EnvPool::ShowNormalized(Slot* slot, int64_t n, float* out) {
  slot->observation.resize(n);  // allocates the first time
  const T* values = reinterpret_cast<const T*>(slot->observation.data());
  slot->env->Observe(slot->observation.data());
  if (!slot->normalizer) {
    std::transform(values, values + n, out, [](T value) { return static_cast<float>(value); });
    return;
  }
  slot->normalizer->Apply(values, out);
  if (slot->live) slot->sums.Add(values);
}

void EnvPool::ObserveNormalized(const std::vector<int64_t>& slots, float* out) {
  const trace::Scope scope("observe", FirstOf(slots), out);
  const int64_t n = ObservationSize();
  auto check = [](size_t, int64_t index, const Slot& slot) {
    if (!slot.started) ThrowInvalid("slot ", index, " has no observation: it was never reset");
  };
  const bool doubles = spec().observation_dtype == DType::kFloat64;
  auto body = [out, n, show = doubles ? &ShowNormalized<double> : &ShowNormalized<float>](int64_t k, Slot& slot) {
    show(&slot, n, out + k * n);
  };
  Run(slots, check, spec().observations_per_task, body);
}

void EnvPool::SetNormalizer(int64_t number, std::vector<double> mean, std::vector<double> std) {
  const int64_t n = ObservationSize();
  for (const auto& [what, values] : {std::pair{"mean", &mean}, std::pair{"std", &std}}) {
    if (static_cast<int64_t>(values->size()) == n) continue;
    ThrowInvalid(what, " has ", values->size(), " values, expected one per value of an observation: ", n);
  }
  normalizers_.Set(number, std::make_shared<const Normalizer>(std::move(mean), std::move(std)));
}

void EnvPool::Behavior(const std::vector<int64_t>& slots, void* out) {
  auto write = [](const Env& env, void* one) { env.Behavior(one); };
  CopyOut("behavior", slots, out, spec().behavior_bytes(), write, kCopiesPerTask);
}

void EnvPool::Render(const std::vector<int64_t>& slots, uint8_t* out) {
  auto write = [](const Env& env, void* one) { env.Render(static_cast<uint8_t*>(one)); };
  CopyOut("screen", slots, out, spec().render_bytes(), write, kCopiesPerTask);
}

void EnvPool::State(const std::vector<int64_t>& slots, double* out) {
  auto write = [](const Env& env, void* one) { env.State(static_cast<double*>(one)); };
  CopyOut("state", slots, out, spec().state_bytes(), write, kCopiesPerTask);
}

std::vector<std::optional<StateKey>> EnvPool::Keys(const std::vector<int64_t>& slots) {
  std::vector<std::optional<StateKey>> keys(slots.size());
  auto check = [](size_t, int64_t index, const Slot& slot) {
    if (!slot.live) ThrowInvalid("slot ", index, " is not live: its episode is over or it was never reset");
  };
  auto body = [&](int64_t k, Slot& slot) {
    if (!slot.normalizer && plan_.every == 0) keys[k] = slot.env->Key();
  };
  Run(slots, check, spec().steps_per_task, body);
  return keys;
}

void EnvPool::RecordBehaviors(int64_t every, int64_t samples) {
  const BehaviorPlan plan(spec(), every, samples);
  std::vector<int64_t> all(slots_.size());
  std::iota(all.begin(), all.end(), 0);
  const Hold hold(&slots_, all);
  for (int64_t slot : all) {
    if (!slots_[slot].started) continue;
    ThrowInvalid("slot ", slot, " was already reset; behaviors must be recorded from the first reset on");
  }
  plan_ = plan;
}

std::string EnvPool::Failure(int64_t slot) {
  const std::vector<int64_t> slots = {slot};
  const Hold hold(&slots_, slots);
  return FailureOf(slots_[slot]);
}

std::string EnvPool::FailureOf(const Slot& slot) { return slot.failure.empty() ? slot.env->Failure() : slot.failure; }

void EnvPool::NoteEnd(Slot* slot) const {
  slot->end = {FailureOf(*slot), slot->env->Retries()};
  if (slot->normalizer) slot->end.observation_sums = slot->sums.values();
  if (plan_.records()) slot->end.behavior = slot->behaviors.Finish(plan_, *slot->env, !slot->end.failure.empty());
  slot->ended = true;
}

std::vector<EpisodeEnd> EnvPool::TakeEnds(const std::vector<int64_t>& slots) {
  const Hold hold(&slots_, slots);
  for (int64_t slot : slots) {
    if (!slots_[slot].ended) ThrowInvalid("slot ", slot, " has no finished episode, or its result was already taken");
  }
  std::vector<EpisodeEnd> ends;
  ends.reserve(slots.size());
  for (int64_t slot : slots) {
    ends.push_back(std::exchange(slots_[slot].end, {}));
    slots_[slot].ended = false;
  }
  return ends;
}

}  // namespace neuroevo
