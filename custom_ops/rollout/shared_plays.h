// Episodes that are not played to their end, because another episode of the same genome was in the same state.
//
// Without sticky actions an episode of a game depends on its number of no-ops, 1 to 30. But most games ignore the
// actions of their first second, so that a network has four different episodes, one for each phase of its steps: the
// others reach states of these within a second, and then follow them.
#ifndef NEUROEVO_ROLLOUT_SHARED_PLAYS_H_
#define NEUROEVO_ROLLOUT_SHARED_PLAYS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/hash.h"
#include "envs/state_key.h"
#include "rollout/episode_result.h"
#include "rollout/queued_episode.h"

namespace neuroevo {

// Episode that follows a play. The differences are between the follower and the play in the same state.
struct Follower {
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  QueuedEpisode episode;
  int64_t priority = 0;
  int64_t more_steps = 0;
  double more_reward = 0;
  int64_t last_step = kNever;  // step of the play in which either of the two is truncated, if it is not the same
};

// Episode that is, or was, played.
struct SharedPlay {
  int64_t steps = 0;
  double total_reward = 0;
  bool over = false;
  EpisodeResult result = {};  // if it is over
  std::vector<Follower> followers;
  // The play that this one follows, if any, and the differences as in Follower; more_frames: left of the leader.
  std::shared_ptr<SharedPlay> leader = nullptr;
  int64_t more_steps = 0, more_frames = 0;
  double more_reward = 0;
};

// Bookkeeping of all genomes' plays. Not thread-safe.
class SharedPlays {
 public:
  static constexpr int64_t kSteps = 128;  // after which the states of an episode are no longer compared

  // Episodes whose results are known, and episodes that must be played from the start after all, up to their own end.
  struct Changes {
    std::vector<EpisodeResult> results;
    std::vector<Follower> again;
  };

  // frames_per_step: 0 if episodes cannot follow others.
  void Start(int64_t frames_per_step) { frames_per_step_ = frames_per_step; }
  bool on() const { return frames_per_step_ > 0; }

  // Count an episode of a genome that is queued; and one whose result is known.
  void Add(int64_t genome);
  void Remove(int64_t genome);
  void Clear() { genomes_.clear(); }

  // Return whether the state after the next step of an episode with this number of steps matters.
  bool Watches(const QueuedEpisode& episode, int64_t steps) const;

  // Let an episode follow an earlier one that was in its state. Returns false without such an episode: it continues.
  bool Follow(const std::shared_ptr<SharedPlay>& play, const QueuedEpisode& episode, int64_t priority,
              const StateKey& key, Changes* changes);
  // Handle the followers of a play after a step, and after its end.
  void Advance(SharedPlay* play, Changes* changes);
  void End(SharedPlay* play, EpisodeResult result, Changes* changes);

 private:
  struct Seen {
    std::shared_ptr<SharedPlay> play;
    int64_t steps, frames_left;
    double total_reward;
  };
  struct First {
    size_t operator()(const Hash128::Value& hash) const { return hash[0]; }
  };
  struct Genome {
    int64_t episodes = 0;  // whose results are unknown
    std::unordered_map<Hash128::Value, Seen, First> states;
  };

  void Place(Follower follower, SharedPlay* leader, Changes* changes);
  void AddResult(const Follower& follower, const EpisodeResult& of, Changes* changes);

  int64_t frames_per_step_ = 0;
  std::unordered_map<int64_t, Genome> genomes_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_SHARED_PLAYS_H_
