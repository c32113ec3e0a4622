// The episode queue: schedules episodes on the slots of the lanes, assigns genomes to rows of the population, sums up
// rewards, and collects results. It is independent of environments and networks: pure bookkeeping under one mutex.
//
// Rows: every lane owns slots_per_lane rows, starting at first_row + lane * slots_per_lane. A genome is written to a
// row when the first of its episodes starts in that lane; the lane's other episodes of the same genome share the row,
// with a reference count. Rows below first_row belong to the caller, for example for parents.
#ifndef NEUROEVO_ROLLOUT_EPISODE_QUEUE_H_
#define NEUROEVO_ROLLOUT_EPISODE_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "envs/state_key.h"
#include "rollout/episode_result.h"
#include "rollout/queued_episode.h"
#include "rollout/shared_plays.h"

namespace neuroevo {

// Live slots of a lane, in ascending order, and the row that each slot plays.
struct LiveSlots {
  std::vector<int64_t> slots;
  std::vector<int64_t> rows;
};

// Work of a lane before its next step.
struct Refill {
  bool closed = false;
  std::exception_ptr failure;  // why the refill failed: then nothing else is set, and the lane must stop
  LiveSlots live;              // after the refill
  // Slots to reset, with the arguments of EnvPool::Reset.
  std::vector<int64_t> slots;
  std::vector<uint64_t> seeds;
  std::vector<int64_t> max_frames;
  std::vector<int64_t> normalizers;
  // Rows to assign, then rows to initialize, then rows to perturb, in order.
  std::vector<int64_t> assign_rows;
  std::vector<int32_t> assign_networks;
  std::vector<Theta> assign_thetas;
  std::vector<int64_t> init_rows;
  std::vector<int32_t> init_networks;
  std::vector<uint64_t> init_seeds;
  std::vector<int64_t> perturb_dst, perturb_src;
  std::vector<uint64_t> perturb_seeds;
  std::vector<float> perturb_scales;
  std::vector<int64_t> perturb_spreads;
};

class EpisodeQueue {
 public:
  // Throws for fewer than one lane or slot, more slots in total than an env pool supports, or a first row out of range.
  EpisodeQueue(int64_t lanes, int64_t slots_per_lane, int64_t first_row);

  int64_t lanes() const { return static_cast<int64_t>(lanes_.size()); }
  int64_t slots_per_lane() const { return slots_per_lane_; }

  // Append episodes. Lower priority numbers are played first, equal ones in order of submission, so that low-priority
  // work fills otherwise idle slots. Throws without appending anything if the queue is closed, the id of an episode or
  // genome is negative, a source_row or spread is not one of the caller's rows, a genome has both a theta and a
  // source_row, or memory runs out.
  void Submit(std::vector<QueuedEpisode> episodes, int64_t priority = 0);

  // Assign the next episodes to the lane's free slots. Calls done before returning, unless the lane has no live slot
  // and the queue is empty: then the Submit, Close or CloseLane that ends the wait calls done. done must not throw.
  void Take(int64_t lane, std::function<void(Refill)> done);

  // Let episodes follow others (shared_plays.h); call it before Submit. frames_per_step: the environment's frame skip.
  void SharePlays(int64_t frames_per_step) { plays_.Start(frames_per_step); }

  // Return the indices of the slots whose states after their next step are to be passed to Put.
  std::vector<size_t> Watched(int64_t lane, const std::vector<int64_t>& slots);

  // Make this lane's waiting and later Takes return closed, since the step that runs the lane was cancelled.
  void CloseLane(int64_t lane);

  struct PutResult {
    LiveSlots live;
    bool refill;  // whether to call Take: slots are free and episodes are queued, or no slot is live
  };
  // Record one step of the lane's slots: add rewards, count steps, and store the results of finished episodes. ends:
  // the env pool's reports on the finished episodes, in slot order. keys: [K], those of the watched slots, or empty.
  PutResult Put(int64_t lane, const std::vector<int64_t>& slots, const double* rewards, const bool* dones,
                std::vector<EpisodeEnd> ends, const std::vector<std::optional<StateKey>>& keys = {});
  // Throw if Put would, because the lane does not exist or a slot is not live: episode ends taken from the env pool for
  // a Put that throws would be lost.
  void CheckPut(int64_t lane, const std::vector<int64_t>& slots);

  // Return the results since the last call, in the order in which the episodes ended. Waits until there are `count`
  // results, the queue is closed, or the time has elapsed.
  std::vector<EpisodeResult> Results(int64_t count = 0, std::chrono::milliseconds time = {});

  // Return the number of steps recorded since the queue was created, including unfinished episodes.
  int64_t TotalSteps();

  // End all waiting Takes and make later Takes return closed; running and queued episodes are dropped. Allocates
  // nothing, since a lane that runs out of memory calls this to stop the other lanes.
  void Close() noexcept;
  bool closed();

 private:
  struct Slot {
    bool live = false;
    int64_t row = -1;
    int64_t lane_row = -1;  // index into the lane's rows; -1 if the row belongs to the caller
    QueuedEpisode episode;
    int64_t priority = 0;
    std::shared_ptr<SharedPlay> play;
  };
  struct Row {
    int64_t genome = -1;  // id of the genome in this row
    int64_t users = 0;    // number of live slots that play it
  };
  struct Lane {
    std::vector<Slot> slots;
    std::vector<Row> rows;
    std::function<void(Refill)> waiting;
    bool closed = false;
  };

  Lane& LaneAt(int64_t lane);
  void CheckGenome(const QueuedEpisode& episode) const;
  // Return the lane after validating the arguments of Put.
  Lane& CheckedLane(int64_t lane, const std::vector<int64_t>& slots);
  LiveSlots LiveOf(const Lane& lane, int64_t index) const;
  Refill RefillLane(int64_t index);
  // Mark a slot whose episode is over, or follows another one, as free.
  static void Free(Lane* lane, Slot* slot);
  void StartEpisode(int64_t lane_index, int64_t slot_index, Refill* refill);
  // Call the callbacks of waiting Takes that can be served, without holding the lock.
  void ServeWaiting() noexcept;

  const int64_t slots_per_lane_;
  const int64_t first_row_;
  std::mutex mutex_;
  std::vector<Lane> lanes_;
  std::map<int64_t, std::list<QueuedEpisode>> episodes_;  // by priority; no list is empty
  std::vector<EpisodeResult> results_;
  SharedPlays plays_;
  std::condition_variable ended_;  // notified when an episode ends or the queue is closed
  int64_t total_steps_ = 0;
  bool closed_ = false;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_EPISODE_QUEUE_H_
