#include "rollout/shared_plays.h"

#include <algorithm>
#include <utility>

namespace neuroevo {

void SharedPlays::Add(int64_t genome) {
  if (on()) genomes_[genome].episodes += 1;
}

void SharedPlays::Remove(int64_t genome) {
  const auto at = genomes_.find(genome);
  if (at != genomes_.end() && --at->second.episodes <= 0) genomes_.erase(at);
}

bool SharedPlays::Watches(const QueuedEpisode& episode, int64_t steps) const {
  const auto at = genomes_.find(episode.genome->id);
  if (at == genomes_.end() || steps >= kSteps) return false;
  return at->second.episodes > 1 || !at->second.states.empty();
}

bool SharedPlays::Follow(const std::shared_ptr<SharedPlay>& play, const QueuedEpisode& episode, int64_t priority,
                         const StateKey& key, Changes* changes) {
  const Seen here = {play, play->steps, key.frames_left, play->total_reward};
  const auto [at, added] = genomes_[episode.genome->id].states.try_emplace(key.hash, here);
  if (added) return false;
  Seen seen = at->second;
  while (seen.play->leader) {
    const SharedPlay& known = *seen.play;
    seen = {known.leader, seen.steps - known.more_steps, seen.frames_left + known.more_frames,
            seen.total_reward - known.more_reward};
  }
  SharedPlay& leader = *seen.play;
  Follower follower = {episode, priority, play->steps - seen.steps, play->total_reward - seen.total_reward};
  if (key.frames_left != seen.frames_left) {
    const int64_t frames = std::min(key.frames_left, seen.frames_left);
    follower.last_step = seen.steps + (frames + frames_per_step_ - 1) / frames_per_step_;
  }
  const bool failed = leader.over && !leader.result.end.failure.empty();
  const bool differs = episode.whole && key.frames_left != seen.frames_left;
  if (&leader == play.get() || follower.last_step <= leader.steps || failed || differs) {
    at->second = here;  // later episodes may follow this one
    return false;
  }
  play->leader = seen.play;
  play->more_steps = follower.more_steps;
  play->more_reward = follower.more_reward;
  play->more_frames = seen.frames_left - key.frames_left;
  const int64_t last_step = follower.last_step;
  Place(std::move(follower), &leader, changes);
  for (Follower& own : std::exchange(play->followers, {})) {
    own.more_steps += play->more_steps;
    own.more_reward += play->more_reward;
    if (own.last_step != Follower::kNever) own.last_step -= play->more_steps;
    own.last_step = std::min(own.last_step, last_step);
    Place(std::move(own), &leader, changes);
  }
  return true;
}

void SharedPlays::Place(Follower follower, SharedPlay* leader, Changes* changes) {
  if (follower.last_step <= leader->steps) {
    follower.episode.whole = true;
    changes->again.push_back(std::move(follower));
  } else if (leader->over) {
    AddResult(follower, leader->result, changes);
  } else {
    leader->followers.push_back(std::move(follower));
  }
}

void SharedPlays::AddResult(const Follower& follower, const EpisodeResult& of, Changes* changes) {
  changes->results.push_back(
      {follower.episode.id, of.total_reward + follower.more_reward, of.steps + follower.more_steps, of.end});
  Remove(follower.episode.genome->id);
}

void SharedPlays::Advance(SharedPlay* play, Changes* changes) {
  for (Follower& follower : std::exchange(play->followers, {})) Place(std::move(follower), play, changes);
}

void SharedPlays::End(SharedPlay* play, EpisodeResult result, Changes* changes) {
  play->over = true;
  play->result = std::move(result);
  const bool failed = !play->result.end.failure.empty();
  for (Follower& follower : std::exchange(play->followers, {})) {
    if (failed) follower.last_step = play->steps;
    Place(std::move(follower), play, changes);
  }
}

}  // namespace neuroevo
