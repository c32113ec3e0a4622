// A place among the workers of a pool: the process that works there, and those that come after it if it fails.
#ifndef NEUROEVO_ENVS_GYMNASIUM_WORKER_PLACE_H_
#define NEUROEVO_ENVS_GYMNASIUM_WORKER_PLACE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "envs/gymnasium/worker.h"

namespace neuroevo {

// Used by the slots whose environments are here, each by a thread of its own.
class WorkerPlace {
 public:
  // Starts the first worker. settings: must outlive the place.
  WorkerPlace(const GymnasiumSettings& settings, int64_t index);

  struct Occupant {
    std::shared_ptr<GymnasiumWorker> worker;
    int64_t number;  // 0 for the first one
  };
  Occupant now();

  // Puts another process in the place of the worker of this number, which has failed, unless somebody has done that.
  void Replace(int64_t number);

  // While it lives, a new worker is brought to where an episode is.
  class CatchUp {
   public:
    explicit CatchUp(WorkerPlace* place);
    ~CatchUp();
    CatchUp(const CatchUp&) = delete;
    CatchUp& operator=(const CatchUp&) = delete;

   private:
    WorkerPlace* place_;
  };

  void Leave();
  // Ends the worker for good if it has worked on one request for longer than that, or on catching up.
  void EndIfStuck(std::chrono::milliseconds time);

 private:
  const GymnasiumSettings& settings_;
  const int64_t index_;
  std::mutex mutex_;  // of what follows
  Occupant now_;
  int64_t catching_up_ = 0;  // episodes
  std::chrono::steady_clock::time_point catching_up_since_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_WORKER_PLACE_H_
