#include "envs/env_pool.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/trace.h"

namespace neuroevo {
namespace {

// Copying out an observation takes a few microseconds, about as long as waking a worker: a task takes several.
constexpr int64_t kCopiesPerTask = 8;

int64_t FirstOf(const std::vector<int64_t>& slots) { return slots.empty() ? -1 : slots.front(); }

void CheckSameLength(const char* what, size_t length, size_t slots) {
  if (length != slots) ThrowInvalid(what, " has ", length, " values, expected one per slot: ", slots);
}

}  // namespace

EnvPool::EnvPool(const std::string& family, const EnvOptions& options, int64_t slots, std::shared_ptr<ThreadPool> pool)
    : pool_(std::move(pool)) {
  if (slots < 1 || slots > kMaxSlots) ThrowInvalid("number of slots is ", slots, ", expected 1 to ", kMaxSlots);
  factory_ = MakeEnvFactory(family, options);
  slots_ = std::vector<Slot>(slots);
  for (Slot& slot : slots_) slot.env = factory_->Make();
}

class EnvPool::Hold {
 public:
  Hold(std::vector<Slot>* all, const std::vector<int64_t>& slots) : all_(all), slots_(slots) {
    for (int64_t slot : slots) CheckIndex("slot", slot, static_cast<int64_t>(all->size()));
    for (; held_ < slots.size(); ++held_) {
      const int64_t slot = slots[held_];
      if (!(*all)[slot].busy.exchange(true)) continue;
      // Busy: either this very call took it a moment ago, or another call has it.
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
void EnvPool::Run(const std::vector<int64_t>& slots, Check check, int64_t grain, Body body) {
  const Hold hold(&slots_, slots);
  for (size_t k = 0; k < slots.size(); ++k) check(k, slots[k], slots_[slots[k]]);
  const int64_t count = static_cast<int64_t>(slots.size());
  pool_->ParallelFor((count + grain - 1) / grain, [&](int64_t task) {
    for (int64_t k = task * grain; k < std::min(count, (task + 1) * grain); ++k) body(k, slots_[slots[k]]);
  });
}

void EnvPool::Reset(const std::vector<int64_t>& slots, const std::vector<uint64_t>& seeds,
                    const std::vector<int64_t>& max_frames) {
  const trace::Scope scope("reset", FirstOf(slots));
  CheckSameLength("seeds", seeds.size(), slots.size());
  CheckSameLength("max_frames", max_frames.size(), slots.size());
  auto check = [&](size_t k, int64_t slot, const Slot&) {
    if (max_frames[k] < 0) ThrowInvalid("max_frames of slot ", slot, " is ", max_frames[k], ", expected 0 or more");
  };
  auto body = [&](int64_t k, Slot& slot) {
    slot.started = slot.live = false;  // and stays so if the environment throws
    slot.env->Reset(seeds[k], max_frames[k]);
    slot.started = slot.live = true;
  };
  Run(slots, check, 1, body);
}

void EnvPool::Step(const std::vector<int64_t>& slots, const void* actions, double* rewards, bool* dones) {
  const trace::Scope scope("step", FirstOf(slots));
  const EnvSpec& spec = this->spec();
  auto check = [&](size_t k, int64_t index, const Slot& slot) {
    if (!slot.live) ThrowInvalid("slot ", index, " is not live: its episode is over or it was never reset");
    if (spec.discrete()) {
      const int32_t action = static_cast<const int32_t*>(actions)[k];
      if (action < 0 || action >= spec.num_actions) {
        throw Error(Error::Kind::kOutOfRange,
                    Concat("action ", action, " of slot ", index, " is out of range [0, ", spec.num_actions, ")"));
      }
      return;
    }
    const float* action = static_cast<const float*>(actions) + k * spec.num_actions;
    for (int64_t a = 0; a < spec.num_actions; ++a) {
      if (!std::isfinite(action[a])) {
        ThrowInvalid("action[", a, "] of slot ", index, " is ", action[a], ", expected a finite value");
      }
    }
  };
  auto body = [actions, rewards, dones, bytes = spec.action_bytes()](int64_t k, Slot& slot) {
    slot.live = false;  // and stays so if the environment throws
    const StepResult result = slot.env->Step(static_cast<const char*>(actions) + k * bytes);
    rewards[k] = result.reward;
    dones[k] = result.done;
    slot.live = !result.done;
  };
  Run(slots, check, 1, body);
}

template <class Write>
void EnvPool::CopyOut(const char* what, const std::vector<int64_t>& slots, void* out, int64_t bytes, Write write) {
  auto check = [what](size_t, int64_t index, const Slot& slot) {
    if (!slot.started) ThrowInvalid("slot ", index, " has no ", what, ": it was never reset");
  };
  auto body = [out, bytes, write](int64_t k, Slot& slot) { write(*slot.env, static_cast<char*>(out) + k * bytes); };
  Run(slots, check, kCopiesPerTask, body);
}

void EnvPool::Observe(const std::vector<int64_t>& slots, void* out) {
  const trace::Scope scope("observe", FirstOf(slots), out);
  auto write = [](const Env& env, void* one) { env.Observe(one); };
  CopyOut("observation", slots, out, spec().observation_bytes(), write);
}

void EnvPool::Behaviour(const std::vector<int64_t>& slots, void* out) {
  auto write = [](const Env& env, void* one) { env.Behaviour(one); };
  CopyOut("behaviour", slots, out, spec().behaviour_bytes(), write);
}

void EnvPool::Render(const std::vector<int64_t>& slots, uint8_t* out) {
  auto write = [](const Env& env, void* one) { env.Render(static_cast<uint8_t*>(one)); };
  CopyOut("screen", slots, out, spec().render_bytes(), write);
}

void EnvPool::State(const std::vector<int64_t>& slots, double* out) {
  auto write = [](const Env& env, void* one) { env.State(static_cast<double*>(one)); };
  CopyOut("state", slots, out, spec().state_bytes(), write);
}

std::string EnvPool::Fault(int64_t slot) {
  const std::vector<int64_t> slots = {slot};
  const Hold hold(&slots_, slots);
  return slots_[slot].env->Fault();
}

}  // namespace neuroevo
