#include "rollout/episode_queue.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "envs/env_pool.h"

namespace neuroevo {
namespace {

constexpr int64_t kMaxFirstRow = int64_t{1} << 40;  // larger than any population, and safe from overflow

}  // namespace

EpisodeQueue::EpisodeQueue(int64_t lanes, int64_t slots_per_lane, int64_t first_row)
    : slots_per_lane_(slots_per_lane), first_row_(first_row) {
  if (lanes < 1) ThrowInvalid("number of lanes is ", lanes, ", expected at least 1");
  if (slots_per_lane < 1) ThrowInvalid("slots per lane is ", slots_per_lane, ", expected at least 1");
  if (slots_per_lane > EnvPool::kMaxSlots / lanes) {
    ThrowInvalid(lanes, " lanes of ", slots_per_lane, " slots, expected at most ", EnvPool::kMaxSlots, " slots in all");
  }
  if (first_row < 0 || first_row > kMaxFirstRow) {
    ThrowInvalid("first row is ", first_row, ", expected 0 to ", kMaxFirstRow);
  }
  lanes_.resize(lanes);
  for (Lane& lane : lanes_) {
    lane.slots.resize(slots_per_lane);
    lane.rows.resize(slots_per_lane);
  }
}

EpisodeQueue::Lane& EpisodeQueue::LaneAt(int64_t lane) {
  CheckIndex("lane", lane, lanes());
  return lanes_[lane];
}

LiveSlots EpisodeQueue::LiveOf(const Lane& lane, int64_t index) const {
  // Slots are numbered over all lanes, as in the env pool.
  LiveSlots live;
  for (int64_t s = 0; s < slots_per_lane_; ++s) {
    if (!lane.slots[s].live) continue;
    live.slots.push_back(index * slots_per_lane_ + s);
    live.rows.push_back(lane.slots[s].row);
  }
  return live;
}

void EpisodeQueue::StartEpisode(int64_t lane_index, int64_t slot_index, Refill* refill) {
  Lane& lane = lanes_[lane_index];
  Slot& slot = lane.slots[slot_index];
  const auto first = episodes_.begin();
  slot.priority = first->first;
  slot.episode = std::move(first->second.front());
  first->second.pop_front();
  if (first->second.empty()) episodes_.erase(first);
  slot.live = true;
  slot.play = std::make_shared<SharedPlay>();
  refill->slots.push_back(lane_index * slots_per_lane_ + slot_index);
  refill->seeds.push_back(slot.episode.seed);
  refill->max_frames.push_back(slot.episode.max_frames);
  refill->normalizers.push_back(slot.episode.normalizer);

  const GenomeRecipe& genome = *slot.episode.genome;
  slot.lane_row = -1;
  if (genome.source_row >= 0 && genome.chain.empty()) {
    slot.row = genome.source_row;
    return;
  }
  // A free row always exists: a lane has as many rows as slots, and this slot does not use a row yet.
  int64_t free_row = -1;
  for (int64_t r = 0; r < slots_per_lane_; ++r) {
    if (lane.rows[r].genome == genome.id) slot.lane_row = r;
    if (lane.rows[r].users == 0) free_row = r;
  }
  const bool fill = slot.lane_row < 0;
  if (fill) slot.lane_row = free_row;
  lane.rows[slot.lane_row].genome = genome.id;
  lane.rows[slot.lane_row].users += 1;
  slot.row = first_row_ + lane_index * slots_per_lane_ + slot.lane_row;
  if (!fill) return;
  int64_t source = genome.source_row;
  if (genome.theta) {
    refill->assign_rows.push_back(slot.row);
    refill->assign_networks.push_back(genome.network);
    refill->assign_thetas.push_back(genome.theta);
    source = slot.row;
  } else if (source < 0) {
    refill->init_rows.push_back(slot.row);
    refill->init_networks.push_back(genome.network);
    refill->init_seeds.push_back(genome.seed);
    source = slot.row;
  }
  for (const auto& [seed, scale, spread] : genome.chain) {
    refill->perturb_dst.push_back(slot.row);
    refill->perturb_src.push_back(source);
    refill->perturb_seeds.push_back(seed);
    refill->perturb_scales.push_back(scale);
    refill->perturb_spreads.push_back(spread);
    source = slot.row;
  }
}

Refill EpisodeQueue::RefillLane(int64_t index) {
  Refill refill;
  refill.closed = closed_ || lanes_[index].closed;
  if (!refill.closed) {
    for (int64_t s = 0; s < slots_per_lane_ && !episodes_.empty(); ++s) {
      if (!lanes_[index].slots[s].live) StartEpisode(index, s, &refill);
    }
  }
  refill.live = LiveOf(lanes_[index], index);
  return refill;
}

void EpisodeQueue::ServeWaiting() noexcept {
  for (int64_t index = 0; index < lanes(); ++index) {
    std::function<void(Refill)> done;
    Refill refill;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!lanes_[index].waiting || (episodes_.empty() && !closed_)) continue;
      done = std::exchange(lanes_[index].waiting, nullptr);
      try {
        refill = RefillLane(index);
      } catch (...) {
        refill.failure = std::current_exception();
      }
    }
    done(std::move(refill));
  }
}

void EpisodeQueue::CheckGenome(const QueuedEpisode& episode) const {
  if (!episode.genome) ThrowInvalid("episode ", episode.id, " has no genome");
  if (episode.id < 0) ThrowInvalid("episode id is ", episode.id, ", expected 0 or more");
  const GenomeRecipe& genome = *episode.genome;
  if (genome.id < 0) ThrowInvalid("genome id is ", genome.id, ", expected 0 or more");  // an empty row has id -1
  const auto check_row = [&](const char* what, int64_t row) {
    if (row >= -1 && row < first_row_) return;
    throw Error(Error::Kind::kOutOfRange,
                Concat(what, " row ", row, " of genome ", genome.id, " is out of range [-1, ", first_row_, ")"));
  };
  check_row("source", genome.source_row);
  for (const ChainLink& link : genome.chain) check_row("spread", link.spread);
  if (genome.theta && genome.source_row != -1) {
    ThrowInvalid("genome ", genome.id, " has a theta and source row ", genome.source_row, ", expected one of them");
  }
}

void EpisodeQueue::Submit(std::vector<QueuedEpisode> episodes, int64_t priority) {
  std::list<QueuedEpisode> more(std::make_move_iterator(episodes.begin()), std::make_move_iterator(episodes.end()));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) throw Error(Error::Kind::kCancelled, "the episode queue is closed");
    for (const auto& episode : more) CheckGenome(episode);
    if (more.empty()) return;
    for (const auto& episode : more) plays_.Add(episode.genome->id);
    std::list<QueuedEpisode>& queued = episodes_[priority];
    queued.splice(queued.end(), more);
  }
  ServeWaiting();
}

void EpisodeQueue::Take(int64_t lane_index, std::function<void(Refill)> done) {
  Refill refill;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Lane& lane = LaneAt(lane_index);
    if (lane.waiting) ThrowInvalid("lane ", lane_index, " is already waiting for an episode");
    refill = RefillLane(lane_index);
    if (refill.live.slots.empty() && !refill.closed) {
      lane.waiting = std::move(done);
      return;
    }
  }
  done(std::move(refill));
}

void EpisodeQueue::CloseLane(int64_t lane_index) {
  std::function<void(Refill)> done;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    LaneAt(lane_index).closed = true;
    done = std::exchange(lanes_[lane_index].waiting, nullptr);
  }
  if (!done) return;
  Refill refill;
  refill.closed = true;
  done(std::move(refill));
}

EpisodeQueue::Lane& EpisodeQueue::CheckedLane(int64_t lane_index, const std::vector<int64_t>& slots) {
  Lane& lane = LaneAt(lane_index);
  const int64_t first_slot = lane_index * slots_per_lane_;
  std::vector<bool> seen(slots_per_lane_);
  for (int64_t slot : slots) {
    if (slot < first_slot || slot >= first_slot + slots_per_lane_) {
      throw Error(Error::Kind::kOutOfRange, Concat("slot ", slot, " of lane ", lane_index, " is out of range [",
                                                   first_slot, ", ", first_slot + slots_per_lane_, ")"));
    }
    if (!lane.slots[slot - first_slot].live) ThrowInvalid("slot ", slot, " plays no episode");
    if (seen[slot - first_slot]) ThrowInvalid("slot ", slot, " is given twice, expected different slots");
    seen[slot - first_slot] = true;
  }
  return lane;
}

void EpisodeQueue::CheckPut(int64_t lane_index, const std::vector<int64_t>& slots) {
  std::lock_guard<std::mutex> lock(mutex_);
  CheckedLane(lane_index, slots);
}

std::vector<size_t> EpisodeQueue::Watched(int64_t lane_index, const std::vector<int64_t>& slots) {
  std::vector<size_t> watched;
  if (!plays_.on()) return watched;
  std::lock_guard<std::mutex> lock(mutex_);
  const Lane& lane = CheckedLane(lane_index, slots);
  for (size_t k = 0; k < slots.size(); ++k) {
    const Slot& slot = lane.slots[slots[k] - lane_index * slots_per_lane_];
    if (plays_.Watches(slot.episode, slot.play->steps)) watched.push_back(k);
  }
  return watched;
}

void EpisodeQueue::Free(Lane* lane, Slot* slot) {
  slot->live = false;
  slot->episode.genome.reset();
  slot->play.reset();
  if (slot->lane_row >= 0) lane->rows[slot->lane_row].users -= 1;
}

EpisodeQueue::PutResult EpisodeQueue::Put(int64_t lane_index, const std::vector<int64_t>& slots, const double* rewards,
                                          const bool* dones, std::vector<EpisodeEnd> ends,
                                          const std::vector<std::optional<StateKey>>& keys) {
  std::unique_lock<std::mutex> lock(mutex_);
  Lane& lane = CheckedLane(lane_index, slots);
  const int64_t first_slot = lane_index * slots_per_lane_;
  if (const auto done = std::count(dones, dones + slots.size(), true); done != static_cast<int64_t>(ends.size())) {
    ThrowInvalid(ends.size(), " ends of episodes, expected one for each that is done: ", done);
  }
  total_steps_ += static_cast<int64_t>(slots.size());
  SharedPlays::Changes changes;
  auto end = ends.begin();
  for (size_t k = 0; k < slots.size(); ++k) {
    Slot& slot = lane.slots[slots[k] - first_slot];
    SharedPlay& play = *slot.play;
    play.total_reward += rewards[k];
    play.steps += 1;
    if (!dones[k]) {
      if (!play.followers.empty()) plays_.Advance(&play, &changes);
      if (k >= keys.size() || !keys[k]) continue;
      if (plays_.Follow(slot.play, slot.episode, slot.priority, *keys[k], &changes)) Free(&lane, &slot);
      continue;
    }
    if (!std::isfinite(play.total_reward)) {  // overflow of the sum: each reward is finite
      if (end->failure.empty()) end->failure = Concat("the return is ", play.total_reward);
      play.total_reward = 0;
    }
    changes.results.push_back({slot.episode.id, play.total_reward, play.steps, std::move(*end++)});
    plays_.End(&play, changes.results.back(), &changes);
    plays_.Remove(slot.episode.genome->id);
    Free(&lane, &slot);
  }
  if (!changes.results.empty()) ended_.notify_all();
  std::move(changes.results.begin(), changes.results.end(), std::back_inserter(results_));
  for (Follower& each : changes.again) {
    if (!closed_) episodes_[each.priority].push_front(std::move(each.episode));
  }
  PutResult result;
  result.live = LiveOf(lane, lane_index);
  const bool free = static_cast<int64_t>(result.live.slots.size()) < slots_per_lane_;
  result.refill = closed_ || result.live.slots.empty() || (free && !episodes_.empty());
  lock.unlock();
  if (!changes.again.empty()) ServeWaiting();
  return result;
}

std::vector<EpisodeResult> EpisodeQueue::Results(int64_t count, std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  ended_.wait_for(lock, time, [&] { return closed_ || static_cast<int64_t>(results_.size()) >= count; });
  return std::exchange(results_, {});
}

int64_t EpisodeQueue::TotalSteps() {
  std::lock_guard<std::mutex> lock(mutex_);
  return total_steps_;
}

bool EpisodeQueue::closed() {
  std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

void EpisodeQueue::Close() noexcept {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    episodes_.clear();
    plays_.Clear();
    ended_.notify_all();
  }
  ServeWaiting();
}

}  // namespace neuroevo
