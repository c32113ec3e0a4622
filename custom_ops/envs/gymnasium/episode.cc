#include "envs/gymnasium/episode.h"

#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

namespace neuroevo {

GymnasiumEpisode::GymnasiumEpisode(WorkerPlace* place, const EnvSpec& spec, int64_t slot, int64_t retries)
    : place_(place),
      slot_(slot),
      limit_(retries),
      action_bytes_(spec.action_bytes()),
      render_bytes_(spec.render_shape.empty() ? 0 : spec.render_bytes()),
      behavior_(spec.behavior_shape.empty() ? 0 : spec.behavior_shape[0]),
      observation_(spec.observation_bytes()) {}

GymnasiumResult GymnasiumEpisode::Reset(uint64_t seed) {
  seed_ = seed;
  worker_ = -1;  // the new episode has no steps to replay yet
  actions_.clear();
  failure_.clear();
  answers_ = 0;
  steps_ = retries_ = 0;
  GymnasiumResult result;
  Ask([&](GymnasiumWorker* worker) { result = AskForReset(worker); });
  Note(result);
  return result;
}

GymnasiumResult GymnasiumEpisode::Step(const void* action) {
  const char* bytes = static_cast<const char*>(action);
  if (limit_ == 0) actions_.clear();
  actions_.insert(actions_.end(), bytes, bytes + action_bytes_);
  GymnasiumResult result;
  Ask([&](GymnasiumWorker* worker) { result = AskForStep(worker, limit_ == 0 ? 0 : steps_); });
  if (!failure_.empty()) return {};
  ++steps_;
  Note(result);
  return result;
}

void GymnasiumEpisode::Render(uint8_t* rgb) {
  const std::string request = MessageWriter(GymnasiumMessage::kRender).Number(static_cast<uint32_t>(slot_)).Finish();
  Ask([&](GymnasiumWorker* worker) {
    worker->Call(slot_, "render", request,
                 [&](MessageReader* answer) { ReadGymnasiumScreen(answer, render_bytes_, rgb); });
  });
  if (!failure_.empty()) throw Error(Error::Kind::kEnvironment, failure_);
}

void GymnasiumEpisode::Ask(const std::function<void(GymnasiumWorker*)>& ask) {
  while (failure_.empty()) {
    const auto [worker, number] = place_->now();
    try {
      if (worker_ >= 0 && worker_ != number) CatchUp(worker.get());
      if (!failure_.empty()) return;
      ask(worker.get());
      worker_ = number;
      return;
    } catch (const GymnasiumWorker::FailedBefore&) {  // another slot's request failed and counts the retry
      if (limit_ == 0 || !worker->replaceable()) throw;
      place_->Replace(number);
    } catch (const Error& error) {
      if (retries_ == limit_ || !worker->replaceable()) throw;
      ++retries_;
      SayAgain(error);
      place_->Replace(number);
    }
  }
}

void GymnasiumEpisode::CatchUp(GymnasiumWorker* worker) {
  const WorkerPlace::CatchUp catching_up(place_);
  const uint64_t expected = std::exchange(answers_, 0);
  const int64_t steps = std::exchange(steps_, 0);
  const auto behaved = behavior_;
  const auto last = observation_;
  // Restore the episode's state on any exception.
  struct Restore {
    ~Restore() {
      episode->answers_ = expected;
      episode->steps_ = steps;
      episode->behavior_ = behaved;
      episode->observation_ = last;
    }
    GymnasiumEpisode* episode;
    const uint64_t expected;
    const int64_t steps;
    const std::vector<double>& behaved;
    const std::vector<char>& last;
  } const restore{this, expected, steps, behaved, last};
  GymnasiumResult result = AskForReset(worker);
  Note(result);
  bool ended = false;
  for (int64_t index = 0; index < steps && !ended; ++index) {
    result = AskForStep(worker, index);
    Note(result);
    ended = (result.end.terminated || result.end.truncated) && index + 1 < steps;
  }
  if (!ended && answers_ == expected) return;
  failure_ = Concat("its worker failed, and replaying the episode from its seed with the same ", steps,
                    " actions gave different results: the environment is not reproducible");
}

GymnasiumResult GymnasiumEpisode::AskForReset(GymnasiumWorker* worker) {
  MessageWriter request(GymnasiumMessage::kReset);
  return Receive(worker, "reset", request.Number(static_cast<uint32_t>(slot_)).Number(seed_).Finish());
}

GymnasiumResult GymnasiumEpisode::AskForStep(GymnasiumWorker* worker, int64_t index) {
  MessageWriter request(GymnasiumMessage::kStep);
  request.Number(static_cast<uint32_t>(slot_)).Bytes(actions_.data() + index * action_bytes_, action_bytes_);
  return Receive(worker, "step", request.Finish());
}

GymnasiumResult GymnasiumEpisode::Receive(GymnasiumWorker* worker, const char* doing, const std::string& request) {
  GymnasiumResult result;
  worker->Call(slot_, doing, request, [&](MessageReader* answer) {
    result = ReadGymnasiumResult(answer, &behavior_, static_cast<int64_t>(observation_.size()), observation_.data());
  });
  return result;
}

void GymnasiumEpisode::Note(const GymnasiumResult& result) {
  if (limit_ == 0) return;
  uint64_t reward;
  std::memcpy(&reward, &result.reward, sizeof(reward));
  const uint64_t end = (result.end.terminated ? 1 : 0) + (result.end.truncated ? 2 : 0);
  const std::hash<std::string_view> of_bytes;
  const uint64_t parts[] = {answers_, reward, end, of_bytes({observation_.data(), observation_.size()})};
  answers_ = of_bytes({reinterpret_cast<const char*>(parts), sizeof(parts)});
}

void GymnasiumEpisode::SayAgain(const Error& error) const {
  const std::string what = error.what();
  std::fprintf(stderr, "%s; another process replays the episode (retry %lld of %lld)\n",
               what.substr(0, what.find('\n')).c_str(), static_cast<long long>(retries_),
               static_cast<long long>(limit_));
}

}  // namespace neuroevo
