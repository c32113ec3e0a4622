#include "envs/vector_env.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/memory.h"
#include "core/philox.h"
#include "core/trace.h"
#include "envs/env_pool.h"

namespace neuroevo {

VectorEnv::VectorEnv(const std::string& family, const EnvOptions& options, int64_t num_envs, Autoreset autoreset,
                     int64_t max_steps, std::shared_ptr<ThreadPool> pool)
    : autoreset_(autoreset), pool_(std::move(pool)) {
  if (num_envs < 1 || num_envs > EnvPool::kMaxSlots) {
    ThrowInvalid("num_envs is ", num_envs, ", expected 1 to ", EnvPool::kMaxSlots);
  }
  if (max_steps < 0 || max_steps > kMaxSteps) {
    ThrowInvalid("max_steps is ", max_steps, ", expected 0 (the environment's own) to ", kMaxSteps);
  }
  factory_ = MakeEnvFactory(family, options);
  max_frames_ = max_steps * spec().frame_skip;
  CheckMemory(Concat(num_envs, " environments of family '", family, "'"), num_envs * spec().memory);
  slots_ = std::vector<Slot>(num_envs);
  for (Slot& slot : slots_) {
    slot.env = factory_->Make();
    slot.info = dynamic_cast<const EpisodeInfo*>(slot.env.get());
  }
  if (slots_.front().info) info_names_ = slots_.front().info->InfoNames();
}

class VectorEnv::Hold {
 public:
  explicit Hold(std::atomic<bool>* busy) : busy_(busy) {
    if (busy->exchange(true)) ThrowInvalid("the environments are in use by another call");
  }
  ~Hold() { busy_->store(false); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::atomic<bool>* busy_;
};

uint64_t VectorEnv::EpisodeSeed(uint64_t seed, uint64_t episode) {
  if (episode == 0) return seed;
  const Philox random = PhiloxWords(seed, episode);
  return (random.word[0] | static_cast<uint64_t>(random.word[1]) << 32) >> 1;
}

int64_t VectorEnv::PerTask() const { return std::min(spec().steps_per_task, spec().observations_per_task); }

void VectorEnv::ForEach(const char* what, int64_t per_task, const std::function<void(int64_t, Slot&)>& body) {
  const trace::Scope scope(what, num_envs());
  try {
    pool_->ParallelFor(num_envs(), per_task, [&](int64_t index) { body(index, slots_[index]); });
  } catch (...) {
    for (Slot& slot : slots_) slot.started = false;  // only some environments were stepped
    throw;
  }
}

void VectorEnv::Begin(Slot* slot) const {
  slot->env->Reset(EpisodeSeed(slot->seed, slot->episode), max_frames_);
  slot->started = true;
  slot->over = false;
}

void VectorEnv::Observe(const Slot& slot, int64_t index, void* out) const {
  slot.env->Observe(static_cast<char*>(out) + index * spec().observation_bytes());
}

void VectorEnv::WriteInfos(const Slot& slot, int64_t index, int64_t* out) const {
  if (info_names_.empty()) return;
  thread_local std::vector<int64_t> values;
  values.resize(info_names_.size());
  slot.info->Infos(values.data());
  for (size_t i = 0; i < values.size(); ++i) out[i * slots_.size() + index] = values[i];
}

void VectorEnv::Reset(const bool* mask, const bool* seeded, const uint64_t* seeds, const Output& out) {
  const Hold hold(&busy_);
  for (int64_t i = 0; i < num_envs(); ++i) {
    if (!mask[i] && !slots_[i].started)
      ThrowInvalid("environment ", i, " has no episode yet, but the mask excludes it");
    if (mask[i] && !seeded[i] && !slots_[i].has_seed) ThrowInvalid("environment ", i, " has no seed");
  }
  ForEach("reset", PerTask(), [&](int64_t i, Slot& slot) {
    if (mask[i]) {
      slot.episode = seeded[i] ? 0 : slot.episode + 1;
      if (seeded[i]) slot.seed = seeds[i];
      slot.has_seed = true;
      slot.failure.clear();
      Begin(&slot);
    }
    Observe(slot, i, out.observations);
    WriteInfos(slot, i, out.infos);
    out.rewards[i] = 0;
    out.terminations[i] = out.truncations[i] = out.failures[i] = false;
  });
}

void VectorEnv::CheckActions(const void* actions) const {
  const int64_t n = spec().num_actions;
  for (int64_t i = 0; i < num_envs(); ++i) {
    if (!slots_[i].started) ThrowInvalid("environment ", i, " has no episode: call reset before step");
    if (slots_[i].over && autoreset_ == Autoreset::kDisabled) {
      ThrowInvalid("the episode of environment ", i, " is over: without autoreset, call reset before step");
    }
    if (spec().discrete()) {
      const int64_t action = static_cast<const int64_t*>(actions)[i];
      if (action >= 0 && action < n) continue;
      throw Error(Error::Kind::kOutOfRange,
                  Concat("action ", action, " of environment ", i, " is out of range [0, ", n, ")"));
    }
    const float* action = static_cast<const float*>(actions) + i * n;
    for (int64_t a = 0; a < n; ++a) {
      if (std::isfinite(action[a])) continue;
      throw Error(Error::Kind::kOutOfRange,
                  Concat("action[", a, "] of environment ", i, " is ", action[a], ", expected a finite number"));
    }
  }
}

void VectorEnv::StepOne(int64_t i, const void* action, const Output& out, Slot* slot) const {
  out.rewards[i] = 0;
  out.terminations[i] = out.truncations[i] = out.failures[i] = false;
  if (slot->over) {
    ++slot->episode;
    Begin(slot);
  } else {
    const StepResult result = slot->env->Step(action);
    const EpisodeInfo::End end = slot->info ? slot->info->HowItEnded() : EpisodeInfo::End{result.done, false};
    out.rewards[i] = result.reward;
    out.terminations[i] = end.terminated;
    out.truncations[i] = end.truncated;
    slot->over = result.done;
    if (result.done) {
      slot->failure = slot->env->Failure();
      out.failures[i] = !slot->failure.empty();
      if (autoreset_ == Autoreset::kSameStep) {
        Observe(*slot, i, out.final_observations);
        WriteInfos(*slot, i, out.final_infos);
        ++slot->episode;
        Begin(slot);
      }
    }
  }
  Observe(*slot, i, out.observations);
  WriteInfos(*slot, i, out.infos);
}

void VectorEnv::Step(const void* actions, const Output& out) {
  const Hold hold(&busy_);
  CheckActions(actions);
  const int64_t n = spec().num_actions;
  ForEach("step", PerTask(), [&](int64_t i, Slot& slot) {
    if (spec().discrete()) {
      const int32_t action = static_cast<int32_t>(static_cast<const int64_t*>(actions)[i]);
      StepOne(i, &action, out, &slot);
    } else {
      StepOne(i, static_cast<const float*>(actions) + i * n, out, &slot);
    }
  });
}

void VectorEnv::Render(uint8_t* out) {
  const Hold hold(&busy_);
  const int64_t bytes = spec().render_bytes();
  for (int64_t i = 0; i < num_envs(); ++i) {
    if (!slots_[i].started) ThrowInvalid("environment ", i, " has no episode: call reset before render");
  }
  ForEach("render", 1, [&](int64_t i, Slot& slot) { slot.env->Render(out + i * bytes); });
}

std::string VectorEnv::Failure(int64_t index) {
  const Hold hold(&busy_);
  CheckIndex("environment", index, num_envs());
  return slots_[index].failure;
}

}  // namespace neuroevo
