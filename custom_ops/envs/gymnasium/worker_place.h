// Place among the workers of a pool: holds the current worker, and its replacements after failures.
#ifndef NEUROEVO_ENVS_GYMNASIUM_WORKER_PLACE_H_
#define NEUROEVO_ENVS_GYMNASIUM_WORKER_PLACE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "envs/gymnasium/worker.h"

namespace neuroevo {

// Worker place, shared by the slots whose environments run here. Thread-safe.
class WorkerPlace {
 public:
  // Start the first worker. settings: must outlive the place.
  WorkerPlace(const GymnasiumSettings& settings, int64_t index);

  struct Occupant {
    std::shared_ptr<GymnasiumWorker> worker;
    int64_t number;  // 0 for the first worker
  };
  Occupant now();

  // Replace the failed worker of this number by a new process, unless another slot has already done so.
  void Replace(int64_t number);

  // Scope guard that marks the replay of an episode in a new worker.
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
  // Kill the worker, without a replacement, if it has been busy with a request or a replay for longer than `time`.
  void EndIfStuck(std::chrono::milliseconds time);

 private:
  const GymnasiumSettings& settings_;
  const int64_t index_;
  std::mutex mutex_;  // guards the members below
  Occupant now_;
  int64_t catching_up_ = 0;  // number of episodes being replayed
  std::chrono::steady_clock::time_point catching_up_since_;
};

}  // namespace neuroevo

#endif  // NEUROEVO_ENVS_GYMNASIUM_WORKER_PLACE_H_
