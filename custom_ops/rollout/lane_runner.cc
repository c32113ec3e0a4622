#include "rollout/lane_runner.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/wait.h"
#include "envs/actions.h"
#include "rollout/put_step.h"

namespace neuroevo {
namespace {

// What networks get to see: games as they are, numbers as float32.
DType InputOf(const EnvSpec& spec) {
  return spec.observation_dtype == DType::kFloat64 ? DType::kFloat32 : spec.observation_dtype;
}

int64_t InputBytes(const EnvSpec& spec) {
  const int64_t values = spec.observation_bytes() / static_cast<int64_t>(SizeOf(spec.observation_dtype));
  return values * static_cast<int64_t>(SizeOf(InputOf(spec)));
}

class Lane {
 public:
  Lane(EnvPool* envs, Population* population, EpisodeQueue* queue, int64_t index)
      : envs_(envs), population_(population), queue_(queue), index_(index) {
    const int64_t slots = queue->slots_per_lane();
    outputs_size_ = population->networks().front().output_size();
    observations_.resize(slots * InputBytes(envs->spec()));
    outputs_.resize(slots * outputs_size_);
    actions_.resize(slots * envs->spec().action_bytes());
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
        Observe(live.slots);
        population_->Forward(live.rows, observations_.data(), outputs_.data());
        envs_->Actions(outputs_.data(), count, outputs_size_, actions_.data());
        envs_->Step(live.slots, actions_.data(), rewards_.data(), dones_.get());
        auto put = PutStep(queue_, envs_, index_, live.slots, rewards_.data(), dones_.get());
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
    for (size_t i = 0; i < refill.assign_rows.size(); ++i) {
      const std::vector<float>& theta = *refill.assign_thetas[i];
      population_->Assign({refill.assign_rows[i]}, {refill.assign_networks[i]}, theta.data(),
                          static_cast<int64_t>(theta.size()));
    }
    population_->Init(refill.init_rows, refill.init_networks, refill.init_seeds);
    population_->Perturb(refill.perturb_dst, refill.perturb_src, refill.perturb_seeds, refill.perturb_scales);
    population_->Prepare(refill.assign_rows);  // what vbn layers take of the reference batch; others cost nothing
    population_->Prepare(refill.init_rows);
    population_->Prepare(refill.perturb_dst);
    envs_->Reset(refill.slots, refill.seeds, refill.max_frames, refill.normalizers);
    *live = std::move(refill.live);
    return true;
  }

  void Observe(const std::vector<int64_t>& slots) {
    if (InputOf(envs_->spec()) == DType::kFloat32) {
      envs_->ObserveNormalized(slots, reinterpret_cast<float*>(observations_.data()));
    } else {
      envs_->Observe(slots, observations_.data());
    }
  }

  EnvPool* envs_;
  Population* population_;
  EpisodeQueue* queue_;
  int64_t index_, outputs_size_;
  std::vector<char> observations_, actions_;
  std::vector<float> outputs_;
  std::vector<double> rewards_;
  std::unique_ptr<bool[]> dones_;
};

}  // namespace

std::vector<EpisodeResult> RunLanes(EnvPool* envs, Population* population, EpisodeQueue* queue, int64_t count) {
  const Network& network = population->networks().front();  // all networks have the same input and output
  CheckOutputs(envs->spec(), network.output_size());
  const DType dtype = InputOf(envs->spec());
  const int64_t bytes = network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype()));
  if (dtype != network.input_dtype() || InputBytes(envs->spec()) != bytes) {
    ThrowInvalid("the environment's observations are ", InputBytes(envs->spec()), " bytes of ", NameOf(dtype),
                 ", expected the networks' input: ", bytes, " bytes of ", NameOf(network.input_dtype()));
  }
  if (envs->slots() != queue->lanes() * queue->slots_per_lane()) {
    ThrowInvalid("the env pool has ", envs->slots(), " slots, expected ", queue->lanes() * queue->slots_per_lane());
  }

  std::mutex mutex;
  std::condition_variable progress;
  std::vector<EpisodeResult> results;
  std::exception_ptr error;
  int64_t running = 0;
  auto collect = [&] {
    std::lock_guard<std::mutex> lock(mutex);
    for (EpisodeResult& result : queue->Results()) results.push_back(std::move(result));
    progress.notify_one();
  };
  auto run_lane = [&](int64_t index) {
    std::exception_ptr failure;
    try {
      Lane(envs, population, queue, index).Run(collect);
    } catch (...) {
      failure = std::current_exception();
    }
    std::lock_guard<std::mutex> lock(mutex);
    if (!error) error = failure;
    --running;
    progress.notify_one();
  };
  auto complete = [&] { return static_cast<int64_t>(results.size()) >= count; };
  std::vector<std::thread> threads;
  {
    std::unique_lock<std::mutex> lock(mutex);
    try {
      for (int64_t index = 0; index < queue->lanes(); ++index, ++running) threads.emplace_back(run_lane, index);
    } catch (...) {  // no more threads; those that there are must be joined
      error = std::current_exception();
    }
    progress.wait(lock, [&] { return error || complete() || running == 0; });
    if (!error && !complete()) {
      error =
          std::make_exception_ptr(Error(Error::Kind::kCancelled, Concat("the episode queue was closed after ",
                                                                        results.size(), " of ", count, " episodes")));
    }
  }
  queue->Close();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return results;
}

}  // namespace neuroevo
