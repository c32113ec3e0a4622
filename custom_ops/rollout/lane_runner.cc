#include "rollout/lane_runner.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.h"

namespace neuroevo {
namespace {

// Turns a call that ends in a Done into one that returns when done, throwing what it passed.
template <class Start>
void Wait(Start start) {
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  std::exception_ptr error;
  start([&](std::exception_ptr e) {
    std::lock_guard<std::mutex> lock(mutex);
    error = e;
    over = true;
    ended.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  ended.wait(lock, [&] { return over; });
  if (error) std::rethrow_exception(error);
}

class Lane {
 public:
  Lane(EnvPool* envs, Population* population, EpisodeQueue* queue, int64_t index)
      : envs_(envs), population_(population), queue_(queue), index_(index) {
    const int64_t slots = queue->slots_per_lane();
    observations_.resize(slots * envs->spec().observation_bytes());
    outputs_.resize(slots * envs->spec().num_actions);
    actions_.resize(slots);
    rewards_.resize(slots);
    dones_ = std::make_unique<bool[]>(slots);
  }

  // on_done is called after every step that ended an episode.
  template <class OnDone>
  void Run(OnDone on_done) {
    LiveSlots live;
    while (FillSlots(&live)) {
      bool refill = false;
      while (!refill) {
        const int64_t count = static_cast<int64_t>(live.slots.size());
        Wait([&](Done done) { envs_->Observe(live.slots, observations_.data(), std::move(done)); });
        Wait([&](Done done) {
          population_->Forward(live.rows, observations_.data(), outputs_.data(), std::move(done));
        });
        ArgMax(outputs_.data(), count, envs_->spec().num_actions, actions_.data());
        Wait([&](Done done) {
          envs_->Step(live.slots, actions_.data(), rewards_.data(), dones_.get(), std::move(done));
        });
        EpisodeQueue::PutResult put = queue_->Put(index_, live.slots, rewards_.data(), dones_.get());
        if (put.live.slots.size() < live.slots.size()) on_done();
        live = std::move(put.live);
        refill = put.refill;
      }
    }
  }

 private:
  // Takes episodes for the free slots; false if the queue is closed.
  bool FillSlots(LiveSlots* live) {
    Refill refill;
    Wait([&](Done done) {
      queue_->Take(index_, [&refill, done = std::move(done)](Refill taken) {
        refill = std::move(taken);
        done(nullptr);
      });
    });
    if (refill.closed) return false;
    Wait([&](Done done) {
      population_->Init(refill.init_rows, refill.init_networks, refill.init_seeds, std::move(done));
    });
    Wait([&](Done done) {
      population_->Perturb(refill.perturb_dst, refill.perturb_src, refill.perturb_seeds, refill.perturb_scales,
                           std::move(done));
    });
    Wait([&](Done done) { envs_->Reset(refill.slots, refill.seeds, refill.max_frames, std::move(done)); });
    *live = std::move(refill.live);
    return true;
  }

  EnvPool* envs_;
  Population* population_;
  EpisodeQueue* queue_;
  int64_t index_;
  std::vector<char> observations_;
  std::vector<float> outputs_;
  std::vector<int32_t> actions_;
  std::vector<double> rewards_;
  std::unique_ptr<bool[]> dones_;
};

}  // namespace

void ArgMax(const float* outputs, int64_t n, int64_t size, int32_t* actions) {
  for (int64_t i = 0; i < n; ++i) {
    int32_t best = 0;
    for (int64_t a = 1; a < size; ++a) {
      if (outputs[i * size + a] > outputs[i * size + best]) best = static_cast<int32_t>(a);
    }
    actions[i] = best;
  }
}

std::vector<EpisodeOutcome> RunLanes(EnvPool* envs, Population* population, EpisodeQueue* queue, int64_t count) {
  if (!envs->spec().discrete()) ThrowInvalid("the environment has continuous actions, expected discrete ones");
  const int64_t outputs = population->networks().front().output_size();
  if (envs->spec().num_actions != outputs) {
    ThrowInvalid("the networks have ", outputs, " outputs, expected one per action: ", envs->spec().num_actions);
  }
  if (envs->slots() != queue->lanes() * queue->slots_per_lane()) {
    ThrowInvalid("the env pool has ", envs->slots(), " slots, expected ", queue->lanes() * queue->slots_per_lane());
  }

  std::mutex mutex;
  std::condition_variable progress;
  std::vector<EpisodeOutcome> outcomes;
  std::exception_ptr error;
  auto collect = [&] {
    std::lock_guard<std::mutex> lock(mutex);
    for (const EpisodeOutcome& outcome : queue->Results()) outcomes.push_back(outcome);
    progress.notify_one();
  };
  std::vector<std::thread> threads;
  for (int64_t index = 0; index < queue->lanes(); ++index) {
    threads.emplace_back([&, index] {
      try {
        Lane(envs, population, queue, index).Run(collect);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!error) error = std::current_exception();
        progress.notify_one();
      }
    });
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    progress.wait(lock, [&] { return error || static_cast<int64_t>(outcomes.size()) >= count; });
  }
  queue->Close();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return outcomes;
}

}  // namespace neuroevo
