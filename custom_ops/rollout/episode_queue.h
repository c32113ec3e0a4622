// Hands episodes to the slots of the lanes, decides in which row of the population each genome lives, adds up rewards,
// and collects results. Knows neither environments nor networks: it is bookkeeping under one mutex.
//
// Rows: every lane owns slots_per_lane rows, from first_row + lane * slots_per_lane on. A genome is put into a row when
// the first of its episodes starts in that lane; the lane's other episodes of the same genome share the row, counted by
// reference. Rows below first_row belong to the caller, who keeps parents in them.
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
#include <vector>

#include "rollout/episode_result.h"

namespace neuroevo {

using Theta = std::shared_ptr<const std::vector<float>>;  // at least D weights of a network; shared by many genomes

// As Population::Perturb takes it. spread: one of the caller's rows, or -1.
struct ChainLink {
  uint64_t seed;
  float scale;
  int64_t spread = -1;
};

// How to put a genome into a row: theta if there is one, or the weights of source_row if it is not negative, else
// init(seed) of the network; then the mutations of the chain. A source_row with an empty chain is played where it is.
struct GenomeRecipe {
  int64_t id;  // equal ids mean equal weights, for the life of the queue
  int64_t source_row = -1;
  int32_t network = 0;
  uint64_t seed = 0;
  std::vector<ChainLink> chain;
  Theta theta = nullptr;  // with source_row = -1
};

struct QueuedEpisode {
  int64_t id;
  uint64_t seed;
  int64_t max_frames;
  std::shared_ptr<const GenomeRecipe> genome;
  int64_t normalizer = -1;  // its number in the env pool; -1: none
};

// The live slots of a lane, in ascending order, and the row that each plays.
struct LiveSlots {
  std::vector<int64_t> slots;
  std::vector<int64_t> rows;
};

// What a lane has to do before its next step.
struct Refill {
  bool closed = false;
  std::exception_ptr failure;  // why there is no refill: then nothing else is set, and the lane cannot go on
  LiveSlots live;              // after the refill
  // Slots to reset, with what EnvPool::Reset takes.
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
  // Throws for less than one lane or slot, more slots in all than an env pool may have, and a first row out of range.
  EpisodeQueue(int64_t lanes, int64_t slots_per_lane, int64_t first_row);

  int64_t lanes() const { return static_cast<int64_t>(lanes_.size()); }
  int64_t slots_per_lane() const { return slots_per_lane_; }

  // Appends episodes. Those of a lower priority number are played first, those of the same in the order in which they
  // came: work with a high number fills the slots that nothing else wants. Throws, appending none, if the queue is
  // closed, an episode's or a genome's id is negative, a source_row or a spread is not one of the caller's rows, a
  // genome starts from two things, or there is no memory.
  void Submit(std::vector<QueuedEpisode> episodes, int64_t priority = 0);

  // Gives the lane's free slots their next episodes. Calls done from here, unless the lane has nothing live and there
  // is no episode: then done is called by the Submit, Close or CloseLane that ends the wait. done must not throw.
  void Take(int64_t lane, std::function<void(Refill)> done);

  // Makes this lane's waiting and later Takes return closed: the step that runs the lane was cancelled.
  void CloseLane(int64_t lane);

  struct PutResult {
    LiveSlots live;
    bool refill;  // a Take is worth while: slots are free and there are episodes, or nothing is live
  };
  // Books one step of the lane's slots: adds rewards, counts steps, records the results of those that are done. ends:
  // what the env pool reports about these, in their order.
  PutResult Put(int64_t lane, const std::vector<int64_t>& slots, const double* rewards, const bool* dones,
                std::vector<EpisodeEnd> ends);
  // Throws where Put would, as there is no such lane or a slot is not one of its live ones: for callers that lose the
  // ends of episodes when they take them for a Put that throws.
  void CheckPut(int64_t lane, const std::vector<int64_t>& slots);

  // The results since the last call, in the order in which the episodes ended. Waits until there are `count` of them,
  // the queue is closed, or the time is over.
  std::vector<EpisodeResult> Results(int64_t count = 0, std::chrono::milliseconds time = {});

  // Steps booked since the queue was made, those of unfinished episodes included.
  int64_t TotalSteps();

  // Ends all waiting Takes, and makes later ones return closed; episodes that are running or queued are dropped. Needs
  // no memory, since it is what a lane that found none ends the others by.
  void Close() noexcept;
  bool closed();

 private:
  struct Slot {
    bool live = false;
    int64_t row = -1;
    int64_t lane_row = -1;  // index into the lane's rows; -1 if the row belongs to the caller
    QueuedEpisode episode;
    double total_reward = 0;
    int64_t steps = 0;
  };
  struct Row {
    int64_t genome = -1;  // id of the genome that is in it
    int64_t users = 0;    // live slots that play it
  };
  struct Lane {
    std::vector<Slot> slots;
    std::vector<Row> rows;
    std::function<void(Refill)> waiting;
    bool closed = false;
  };

  Lane& LaneAt(int64_t lane);
  void CheckGenome(const QueuedEpisode& episode) const;
  // The lane, once it and its slots are known to be what Put takes.
  Lane& CheckedLane(int64_t lane, const std::vector<int64_t>& slots);
  LiveSlots LiveOf(const Lane& lane, int64_t index) const;
  Refill RefillLane(int64_t index);
  void StartEpisode(int64_t lane_index, int64_t slot_index, Refill* refill);
  // Runs the callbacks of waiting Takes that can run now, with their refills, without the lock.
  void ServeWaiting() noexcept;

  const int64_t slots_per_lane_;
  const int64_t first_row_;
  std::mutex mutex_;
  std::vector<Lane> lanes_;
  std::map<int64_t, std::list<QueuedEpisode>> episodes_;  // by priority; none is empty
  std::vector<EpisodeResult> results_;
  std::condition_variable ended_;  // an episode, or the queue
  int64_t total_steps_ = 0;
  bool closed_ = false;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ROLLOUT_EPISODE_QUEUE_H_
