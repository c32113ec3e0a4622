// CPU kernels of the episode queue's ops.
#include <algorithm>
#include <chrono>
#include <memory>

#include "envs/env_pool.h"
#include "rollout/episode_queue.h"
#include "rollout/put_step.h"
#include "rollout/submission.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tf/kernel_util.h"

namespace neuroevo::tf_ops {
namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

constexpr int64_t kLongestWait = 60'000;  // milliseconds

EpisodeQueue& LookupQueue(OpKernelContext* ctx) { return Lookup<EpisodeQueue>(ctx, "an episode queue"); }

class EpisodeQueueMakeOp : public OpKernel {
 public:
  explicit EpisodeQueueMakeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("lanes", &lanes_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("slots_per_lane", &slots_per_lane_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("first_row", &first_row_));
  }
  void Compute(OpKernelContext* ctx) override {
    MakeResource<EpisodeQueue>(ctx, [&] { return new Resource<EpisodeQueue>(lanes_, slots_per_lane_, first_row_); });
  }

 private:
  int64_t lanes_, slots_per_lane_, first_row_;
};

class EpisodeQueueSubmitOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      Submission in;
      in.num_episodes = VectorInput(ctx, "episode_ids").dim_size(0);
      in.episode_ids = Data<int64_t>(ctx, "episode_ids", in.num_episodes);
      in.episode_genomes = Data<int64_t>(ctx, "episode_genomes", in.num_episodes);
      in.episode_seeds = Seeds(ctx, "episode_seeds", in.num_episodes);
      in.episode_max_frames = Data<int64_t>(ctx, "episode_max_frames", in.num_episodes);
      in.episode_normalizers = Data<int64_t>(ctx, "episode_normalizers", in.num_episodes);
      in.num_genomes = VectorInput(ctx, "genome_ids").dim_size(0);
      in.genome_ids = Data<int64_t>(ctx, "genome_ids", in.num_genomes);
      in.genome_networks = Data<int32_t>(ctx, "genome_networks", in.num_genomes);
      in.genome_sources = Data<int64_t>(ctx, "genome_sources", in.num_genomes);
      in.genome_seeds = Seeds(ctx, "genome_seeds", in.num_genomes);
      in.genome_thetas = Data<int64_t>(ctx, "genome_thetas", in.num_genomes);
      in.num_mutations = VectorInput(ctx, "chain_seeds").dim_size(0);
      in.chain_splits = Data<int64_t>(ctx, "chain_splits", in.num_genomes + 1);
      in.chain_seeds = Seeds(ctx, "chain_seeds", in.num_mutations);
      in.chain_scales = Data<float>(ctx, "chain_scales", in.num_mutations);
      in.chain_spreads = Data<int64_t>(ctx, "chain_spreads", in.num_mutations);
      const tensorflow::Tensor& thetas = Input(ctx, "thetas");
      if (thetas.dims() != 2) {
        ThrowInvalid("input 'thetas' has shape ", thetas.shape().DebugString(), ", expected [V, W]");
      }
      in.num_thetas = thetas.dim_size(0);
      in.thetas = thetas.flat<float>().data();
      in.theta_size = thetas.dim_size(1);
      LookupQueue(ctx).Submit(BuildEpisodes(in), Scalar<int64_t>(ctx, "priority"));
    });
  }

 private:
  template <class T>
  static const T* Data(OpKernelContext* ctx, const char* name, int64_t size) {
    return VectorInput(ctx, name, size).flat<T>().data();
  }

  // Seeds are int64 in TensorFlow and uint64 in the core.
  static const uint64_t* Seeds(OpKernelContext* ctx, const char* name, int64_t size) {
    return reinterpret_cast<const uint64_t*>(Data<int64_t>(ctx, name, size));
  }
};

class EpisodeQueueTakeOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    RunAsync(ctx, done, [&](Done finish) {
      EpisodeQueue& queue = LookupQueue(ctx);
      const int64_t lane = Scalar<int64_t>(ctx, "lane");
      CheckIndex("lane", lane, queue.lanes());  // checked here because the callback must not throw
      // A cancelled step, for example after an error elsewhere in the graph, must not leave this op waiting forever.
      // The callback may run after this op has finished, so it holds a reference to the queue.
      tensorflow::CancellationManager* cancellation = ctx->cancellation_manager();
      tensorflow::CancellationToken token = 0;
      if (cancellation != nullptr) {
        token = cancellation->get_cancellation_token();
        const tensorflow::Tensor handle = ctx->input(0);
        if (!cancellation->RegisterCallback(token, [handle, &queue, lane] { queue.CloseLane(lane); })) {
          throw Error(Error::Kind::kCancelled, "the step was cancelled");
        }
      }
      try {
        queue.Take(lane, [ctx, finish, cancellation, token](Refill refill) {
          // Does not block: this may run inside the cancellation callback, which must not wait for itself.
          if (cancellation != nullptr) cancellation->TryDeregisterCallback(token);
          std::exception_ptr error = refill.failure;
          try {
            if (!error) SetOutputs(ctx, refill);
          } catch (...) {
            error = std::current_exception();
          }
          finish(error);
        });
      } catch (...) {
        if (cancellation != nullptr) cancellation->DeregisterCallback(token);
        throw;
      }
    });
  }

 private:
  static void SetOutputs(OpKernelContext* ctx, const Refill& refill) {
    SetScalar<bool>(ctx, 0, refill.closed);
    SetVector<int64_t>(ctx, 1, refill.live.slots);
    SetVector<int64_t>(ctx, 2, refill.live.rows);
    SetVector<int64_t>(ctx, 3, refill.slots);
    SetVector<int64_t>(ctx, 4, refill.seeds);
    SetVector<int64_t>(ctx, 5, refill.max_frames);
    SetVector<int64_t>(ctx, 6, refill.normalizers);
    SetVector<int64_t>(ctx, 7, refill.assign_rows);
    SetVector<int32_t>(ctx, 8, refill.assign_networks);
    SetThetas(ctx, 9, refill.assign_thetas);
    SetVector<int64_t>(ctx, 10, refill.init_rows);
    SetVector<int32_t>(ctx, 11, refill.init_networks);
    SetVector<int64_t>(ctx, 12, refill.init_seeds);
    SetVector<int64_t>(ctx, 13, refill.perturb_dst);
    SetVector<int64_t>(ctx, 14, refill.perturb_src);
    SetVector<int64_t>(ctx, 15, refill.perturb_seeds);
    SetVector<float>(ctx, 16, refill.perturb_scales);
    SetVector<int64_t>(ctx, 17, refill.perturb_spreads);
  }

  // Set an output [A, W], where W is the longest theta's length; shorter ones are zero-padded.
  static void SetThetas(OpKernelContext* ctx, int index, const std::vector<Theta>& thetas) {
    size_t width = 0;
    for (const Theta& theta : thetas) width = std::max(width, theta->size());
    float* out =
        Output(ctx, index, {static_cast<int64_t>(thetas.size()), static_cast<int64_t>(width)})->flat<float>().data();
    for (const Theta& theta : thetas) {
      std::fill(std::copy(theta->begin(), theta->end(), out), out + width, 0.0f);
      out += width;
    }
  }
};

class EpisodeQueuePutOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      const auto slots = Values<int64_t>(ctx, "slots");
      const int64_t k = static_cast<int64_t>(slots.size());
      const auto& rewards = Checked(ctx, "rewards", tensorflow::DT_DOUBLE, {k});
      const auto& dones = Checked(ctx, "dones", tensorflow::DT_BOOL, {k});
      const EpisodeQueue::PutResult result =
          PutStep(&LookupQueue(ctx), &Lookup<EnvPool>(ctx, "an env pool", 1, "env_pool"), Scalar<int64_t>(ctx, "lane"),
                  slots, rewards.flat<double>().data(), dones.flat<bool>().data());
      SetVector<int64_t>(ctx, 0, result.live.slots);
      SetVector<int64_t>(ctx, 1, result.live.rows);
      SetScalar<bool>(ctx, 2, result.refill);
    });
  }
};

class EpisodeQueueResultsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      EpisodeQueue& queue = LookupQueue(ctx);
      const std::chrono::milliseconds time(std::clamp<int64_t>(Scalar<int64_t>(ctx, "milliseconds"), 0, kLongestWait));
      const std::vector<EpisodeResult> results = queue.Results(Scalar<int64_t>(ctx, "count"), time);
      SetScalar<int64_t>(ctx, 7, queue.TotalSteps());
      const int64_t count = static_cast<int64_t>(results.size());
      auto ids = Output(ctx, 0, {count})->flat<int64_t>();
      auto returns = Output(ctx, 1, {count})->flat<double>();
      auto steps = Output(ctx, 2, {count})->flat<int64_t>();
      auto failures = Output(ctx, 3, {count})->flat<tensorflow::tstring>();
      auto retries = Output(ctx, 4, {count})->flat<int64_t>();
      for (int64_t i = 0; i < count; ++i) {
        ids(i) = results[i].id;
        returns(i) = results[i].total_reward;
        steps(i) = results[i].steps;
        failures(i) = results[i].end.failure;
        retries(i) = results[i].end.retries;
      }
      SetRows(ctx, 5, results, &EpisodeEnd::observation_sums);
      SetRows(ctx, 6, results, &EpisodeEnd::behavior);
    });
  }

 private:
  template <class T>
  static void SetRows(OpKernelContext* ctx, int index, const std::vector<EpisodeResult>& results,
                      std::vector<T> EpisodeEnd::* row) {
    const int64_t count = static_cast<int64_t>(results.size());
    CopyRows(results, row, Output(ctx, index, {count, WidthOf(results, row)})->template flat<T>().data());
  }
};

class EpisodeQueueCloseOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] { LookupQueue(ctx).Close(); });
  }
};

REGISTER_KERNEL_BUILDER(Name("EpisodeQueueMake").Device(tensorflow::DEVICE_CPU), EpisodeQueueMakeOp);
REGISTER_KERNEL_BUILDER(Name("EpisodeQueueSubmit").Device(tensorflow::DEVICE_CPU), EpisodeQueueSubmitOp);
REGISTER_KERNEL_BUILDER(Name("EpisodeQueueTake").Device(tensorflow::DEVICE_CPU), EpisodeQueueTakeOp);
REGISTER_KERNEL_BUILDER(Name("EpisodeQueuePut").Device(tensorflow::DEVICE_CPU), EpisodeQueuePutOp);
REGISTER_KERNEL_BUILDER(Name("EpisodeQueueResults").Device(tensorflow::DEVICE_CPU), EpisodeQueueResultsOp);
REGISTER_KERNEL_BUILDER(Name("EpisodeQueueClose").Device(tensorflow::DEVICE_CPU), EpisodeQueueCloseOp);

}  // namespace
}  // namespace neuroevo::tf_ops
