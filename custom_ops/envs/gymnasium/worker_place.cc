#include "envs/gymnasium/worker_place.h"

#include <utility>

namespace neuroevo {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

WorkerPlace::WorkerPlace(const GymnasiumSettings& settings, int64_t index)
    : settings_(settings), index_(index), now_{std::make_shared<GymnasiumWorker>(settings, index), 0} {}

WorkerPlace::Occupant WorkerPlace::now() {
  std::lock_guard<std::mutex> lock(mutex_);
  return now_;
}

void WorkerPlace::Replace(int64_t number) {
  std::shared_ptr<GymnasiumWorker> failed;  // destroyed without the lock, after the last user has released it
  std::lock_guard<std::mutex> lock(mutex_);
  if (now_.number != number) return;
  failed = std::exchange(now_.worker, std::make_shared<GymnasiumWorker>(settings_, index_));
  ++now_.number;
}

WorkerPlace::CatchUp::CatchUp(WorkerPlace* place) : place_(place) {
  std::lock_guard<std::mutex> lock(place->mutex_);
  if (place->catching_up_++ == 0) place->catching_up_since_ = Clock::now();
}

WorkerPlace::CatchUp::~CatchUp() {
  std::lock_guard<std::mutex> lock(place_->mutex_);
  --place_->catching_up_;
}

void WorkerPlace::Leave() { now().worker->Leave(); }

void WorkerPlace::EndIfStuck(std::chrono::milliseconds time) {
  std::lock_guard<std::mutex> lock(mutex_);
  now_.worker->EndIfStuck(time);
  if (catching_up_ > 0 && Clock::now() - catching_up_since_ > time) now_.worker->GiveUp();
}

}  // namespace neuroevo
