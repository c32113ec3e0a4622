// The Gymnasium family: any environment that gymnasium.make supports, in Python worker processes
// (neuroevo/envs/gymnasium/worker.py), over which the slots are distributed round-robin. A step blocks the calling
// thread until its worker replies.
//
// Options: command (program and arguments of a worker, one per line), id and keywords (JSON) of the environment,
// behavior (keys of its info that form the behavior, one per line), workers (maximum number; never more than slots),
// timeout (seconds within which a worker must reply), retries (how often an episode is replayed if its worker fails,
// see episode.h).
//
// A frame is a step. An episode ends when the environment terminates or truncates it, after max_frames, or after
// 100,000 steps if the environment has no limit. A non-finite reward, behavior or observation ends the episode with
// reward 0 for that step and the reason as its failure; the observation remains the last finite one, initially zeros.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/fork.h"
#include "core/text.h"
#include "envs/env.h"
#include "envs/episode_info.h"
#include "envs/gymnasium/episode.h"
#include "envs/gymnasium/protocol.h"
#include "envs/gymnasium/worker_place.h"

namespace neuroevo {
namespace {

constexpr int64_t kMaxWorkers = 4096, kMaxRetries = 1000;
constexpr int64_t kMaxSteps = 100'000;  // step limit for environments without a limit
constexpr double kTimeout = 300, kMaxTimeout = 1e6;

template <class T>
bool AllFinite(const char* bytes, size_t size) {
  for (size_t i = 0; i + sizeof(T) <= size; i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes + i, sizeof(T));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// Workers of a pool, and their description of the environment.
class GymnasiumWorkers {
 public:
  explicit GymnasiumWorkers(const EnvOptions& given) {
    OptionReader options("gymnasium", given);
    settings_.command = SplitLines(options.String("command", ""));
    settings_.id = options.String("id", "");
    settings_.keywords = options.String("keywords", "{}");
    settings_.behavior = options.String("behavior", "");
    settings_.timeout = options.Double("timeout", kTimeout, 0.001, kMaxTimeout);
    limit_ = options.Int("workers", 1, 1, kMaxWorkers);
    retries_ = options.Int("retries", 0, 0, kMaxRetries);
    options.Finish();
    if (settings_.id.empty()) ThrowInvalid("gymnasium needs the option id=ENVIRONMENT");
    places_.push_back(std::make_unique<WorkerPlace>(settings_, 0));
    settings_.description = places_[0]->now().worker->Description();
    MessageReader description(settings_.description);
    GymnasiumSpec read = ReadGymnasiumSpec(&description);
    spec_ = std::move(read.spec);
    if (const auto keys = SplitLines(settings_.behavior); !keys.empty()) {
      spec_.behavior_dtype = DType::kFloat64;
      spec_.behavior_shape = {static_cast<int64_t>(keys.size())};
    }
    max_steps_ = read.max_steps == 0 ? kMaxSteps : std::numeric_limits<int64_t>::max();
    const ProcessLock lock(AllMutex());
    All().insert(this);
  }

  ~GymnasiumWorkers() {
    {
      const ProcessLock lock(AllMutex());
      All().erase(this);
    }
    for (auto& place : places_) place->Leave();  // first, so that all workers exit concurrently
  }
  GymnasiumWorkers(const GymnasiumWorkers&) = delete;
  GymnasiumWorkers& operator=(const GymnasiumWorkers&) = delete;

  const EnvSpec& spec() const { return spec_; }
  int64_t max_steps() const { return max_steps_; }
  int64_t retries() const { return retries_; }

  // Return the place of a slot's worker. Slots are created in order, and the first slots start the workers.
  WorkerPlace* Of(int64_t slot) {
    const int64_t index = slot % limit_;
    if (index == static_cast<int64_t>(places_.size())) {
      auto started = std::make_unique<WorkerPlace>(settings_, index);
      const ProcessLock lock(AllMutex());
      places_.push_back(std::move(started));
    }
    return places_[index].get();
  }

  static void EndStuck(std::chrono::milliseconds time) {
    const ProcessLock lock(AllMutex());
    for (GymnasiumWorkers* workers : All()) {
      for (auto& place : workers->places_) place->EndIfStuck(time);
    }
  }

 private:
  // The workers of all pools, for EndStuck().
  static std::set<GymnasiumWorkers*>& All() {
    static auto* all = new std::set<GymnasiumWorkers*>();
    return *all;
  }
  static ProcessMutex& AllMutex() {
    static auto* mutex = new ProcessMutex();
    return *mutex;
  }

  GymnasiumSettings settings_;
  int64_t limit_ = 1, retries_ = 0, max_steps_ = 0;
  EnvSpec spec_;
  std::vector<std::unique_ptr<WorkerPlace>> places_;
};

class GymnasiumEnv : public Env, public EpisodeInfo {
 public:
  GymnasiumEnv(std::shared_ptr<GymnasiumWorkers> workers, int64_t slot)
      : workers_(std::move(workers)),
        episode_(workers_->Of(slot), workers_->spec(), slot, workers_->retries()),
        observation_(workers_->spec().observation_bytes()) {}

  void Reset(uint64_t seed, int64_t max_frames) override {
    steps_ = 0;
    end_ = {};
    last_step_ = max_frames == 0 ? workers_->max_steps() : std::min(max_frames, workers_->max_steps());
    failure_.clear();
    std::fill(observation_.begin(), observation_.end(), 0);
    Check(episode_.Reset(seed));
  }

  StepResult Step(const void* action) override {
    end_ = {true, false};  // applies if the episode has failed or fails below
    if (!failure_.empty()) return {0, true};
    ++steps_;
    const GymnasiumResult result = episode_.Step(action);
    Check(result);
    if (!failure_.empty()) return {0, true};
    end_ = {result.end.terminated, result.end.truncated || steps_ >= last_step_};
    return {result.reward, end_.terminated || end_.truncated};
  }

  End HowItEnded() const override { return end_; }

  void Observe(void* out) const override { std::memcpy(out, observation_.data(), observation_.size()); }

  void Behavior(void* out) const override {
    const std::vector<double>& numbers = episode_.behavior();
    std::copy(numbers.begin(), numbers.end(), static_cast<double*>(out));
  }

  void Render(uint8_t* rgb) const override { episode_.Render(rgb); }

  std::string Failure() const override { return failure_; }

  int64_t Retries() const override { return episode_.retries(); }

 private:
  // Set failure_ if a value is not finite.
  void Check(const GymnasiumResult& result) {
    if (!episode_.failure().empty()) {
      failure_ = episode_.failure();
    } else if (!std::isfinite(result.reward)) {
      failure_ = Concat("the reward is ", result.reward, " at step ", steps_);
    } else if (steps_ > 0 && !BehaviorIsFinite()) {  // a reset may have no info
      failure_ = Concat("the behavior has a number that is not finite at step ", steps_);
    } else if (!Finite()) {
      failure_ = Concat("the observation has a number that is not finite at step ", steps_);
    } else {
      observation_ = episode_.observation();
    }
  }

  bool BehaviorIsFinite() const {
    const std::vector<double>& numbers = episode_.behavior();
    return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
  }

  bool Finite() const {
    const std::vector<char>& received = episode_.observation();
    switch (workers_->spec().observation_dtype) {
      case DType::kFloat32:
        return AllFinite<float>(received.data(), received.size());
      case DType::kFloat64:
        return AllFinite<double>(received.data(), received.size());
      default:
        return true;
    }
  }

  const std::shared_ptr<GymnasiumWorkers> workers_;
  mutable GymnasiumEpisode episode_;  // mutable because rendering may require a replay
  int64_t steps_ = 0, last_step_ = 0;
  std::vector<char> observation_;  // the last finite one
  std::string failure_;
  End end_;
};

class GymnasiumFactory : public EnvFactory {
 public:
  explicit GymnasiumFactory(const EnvOptions& options) : workers_(std::make_shared<GymnasiumWorkers>(options)) {}

  const EnvSpec& spec() const override { return workers_->spec(); }
  std::unique_ptr<Env> Make() override { return std::make_unique<GymnasiumEnv>(workers_, slots_++); }

 private:
  std::shared_ptr<GymnasiumWorkers> workers_;
  int64_t slots_ = 0;
};

const bool registered = RegisterEnvFamily(
    "gymnasium", [](const EnvOptions& options) { return std::make_unique<GymnasiumFactory>(options); });

}  // namespace
}  // namespace neuroevo

extern "C" {

// Kill the workers that have been busy with one request for longer than `seconds`, in [0, kMaxTimeout]; callers that
// wait for them get an error. Used to end a run whose environment hangs.
__attribute__((visibility("default"))) void neuroevo_gymnasium_end_stuck(double seconds) {
  const double within = std::fmin(std::fmax(seconds, 0), neuroevo::kMaxTimeout);  // a NaN too
  neuroevo::GymnasiumWorkers::EndStuck(std::chrono::milliseconds(static_cast<int64_t>(1000 * within)));
}

}  // extern "C"
