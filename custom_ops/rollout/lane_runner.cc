#include "rollout/lane_runner.h"

#include <pthread.h>

#include <utility>

#include "core/error.h"
#include "core/wait.h"
#include "envs/actions.h"
#include "rollout/put_step.h"

namespace neuroevo {
namespace {

// Dtype of the network inputs: uint8 screens unchanged, other observations as float32.
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
    has_states_ = envs->slots() <= population->rows();
    outputs_size_ = population->networks().front().output_size();
    observations_ = population->HostMemory(slots * InputBytes(envs->spec()));
    outputs_.resize(slots * outputs_size_);
    actions_.resize(slots * envs->spec().action_bytes());
    rewards_.resize(slots);
    dones_ = std::make_unique<bool[]>(slots);
  }

  // Play episodes until the queue is closed.
  void Run() {
    LiveSlots live;
    const std::vector<int64_t> none;
    while (FillSlots(&live)) {
      bool refill = false;
      while (!refill) {
        const int64_t count = static_cast<int64_t>(live.slots.size());
        Observe(live.slots);
        population_->Forward(live.rows, observations_.get(), outputs_.data(), has_states_ ? live.slots : none);
        envs_->Actions(outputs_.data(), count, outputs_size_, actions_.data());
        envs_->Step(live.slots, actions_.data(), rewards_.data(), dones_.get());
        auto put = PutStep(queue_, envs_, index_, live.slots, rewards_.data(), dones_.get());
        live = std::move(put.live);
        refill = put.refill;
      }
    }
  }

 private:
  // Take episodes for the free slots; return false if the queue is closed.
  bool FillSlots(LiveSlots* live) {
    Refill refill;
    Wait([&](Done done) {
      queue_->Take(index_, [&refill, done = std::move(done)](Refill taken) {
        refill = std::move(taken);
        done(nullptr);
      });
    });
    if (refill.failure) std::rethrow_exception(refill.failure);
    if (refill.closed) return false;
    for (size_t i = 0; i < refill.assign_rows.size(); ++i) {
      const std::vector<float>& theta = *refill.assign_thetas[i];
      population_->Assign({refill.assign_rows[i]}, {refill.assign_networks[i]}, theta.data(),
                          static_cast<int64_t>(theta.size()));
    }
    population_->Init(refill.init_rows, refill.init_networks, refill.init_seeds);
    population_->Perturb(refill.perturb_dst, refill.perturb_src, refill.perturb_seeds, refill.perturb_scales,
                         refill.perturb_spreads);
    population_->Prepare(refill.assign_rows);  // statistics of vbn layers; free for other networks
    population_->Prepare(refill.init_rows);
    population_->Prepare(refill.perturb_dst);
    population_->ClearStates(refill.slots);  // states are indexed by slot
    envs_->Reset(refill.slots, refill.seeds, refill.max_frames, refill.normalizers);
    *live = std::move(refill.live);
    return true;
  }

  void Observe(const std::vector<int64_t>& slots) {
    if (InputOf(envs_->spec()) == DType::kFloat32) {
      envs_->ObserveNormalized(slots, reinterpret_cast<float*>(observations_.get()));
    } else {
      envs_->Observe(slots, observations_.get());
    }
  }

  EnvPool* envs_;
  Population* population_;
  EpisodeQueue* queue_;
  int64_t index_, outputs_size_;
  std::shared_ptr<char> observations_;
  std::vector<char> actions_;
  std::vector<float> outputs_;
  std::vector<double> rewards_;
  std::unique_ptr<bool[]> dones_;
  bool has_states_;  // whether the population has a recurrent state for each slot
};

}  // namespace

LaneRunner::LaneRunner(EnvPool* envs, Population* population, EpisodeQueue* queue)
    : envs_(envs), population_(population), queue_(queue) {
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
  if (population->recurrent() && population->rows() < envs->slots()) {
    ThrowInvalid("the population has ", population->rows(), " states, expected at least ", envs->slots(),
                 ", one for each slot");
  }
  if (envs->spec().keyed && !population->recurrent()) queue->SharePlays(envs->spec().frame_skip);
  running_ = queue->lanes();
  try {
    for (int64_t lane = 0; lane < queue->lanes(); ++lane) {
      threads_.emplace_back([this, lane] { Run(lane); });
      pthread_setname_np(threads_.back().native_handle(), "lane");  // for profilers
    }
  } catch (...) {  // starting a thread failed; those already started must be joined
    Stop();
    throw;
  }
}

LaneRunner::~LaneRunner() { Stop(); }

void LaneRunner::Stop() {
  queue_->Close();
  for (std::thread& thread : threads_) thread.join();
}

void LaneRunner::Run(int64_t lane) {
  std::exception_ptr failure;
  try {
    Lane(envs_, population_, queue_, lane).Run();
  } catch (...) {
    failure = std::current_exception();
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_) failure_ = failure;
  }
  if (failure) queue_->Close();  // wakes callers that wait for results, which then see the failure
  std::lock_guard<std::mutex> lock(mutex_);
  --running_;
  ended_.notify_all();
}

void LaneRunner::RethrowFailure() {
  std::exception_ptr failure;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    failure = failure_;
  }
  if (failure) std::rethrow_exception(failure);
}

bool LaneRunner::WaitForEnd(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  return ended_.wait_for(lock, time, [&] { return running_ == 0; });
}

std::vector<EpisodeResult> RunLanes(EnvPool* envs, Population* population, EpisodeQueue* queue, int64_t count) {
  std::vector<EpisodeResult> results;
  const auto missing = [&] { return count - static_cast<int64_t>(results.size()); };
  LaneRunner lanes(envs, population, queue);
  for (bool closed = false; missing() > 0 && !closed;) {
    closed = queue->closed();  // read first: then the results below are the last ones
    for (EpisodeResult& result : queue->Results(missing(), std::chrono::minutes(1))) {
      results.push_back(std::move(result));
    }
  }
  lanes.RethrowFailure();
  if (missing() > 0) {
    throw Error(Error::Kind::kCancelled,
                Concat("the episode queue was closed after ", results.size(), " of ", count, " episodes"));
  }
  return results;
}

}  // namespace neuroevo
