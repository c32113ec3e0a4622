// CPU kernels of the episode queue's ops.
#include <algorithm>
#include <chrono>
#include <memory>

#include "rollout/episode_queue.h"
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
      auto genomes = Genomes(ctx);
      const auto ids = Values<int64_t>(ctx, "episode_ids");
      const int64_t count = static_cast<int64_t>(ids.size());
      const auto genome_of = Values<int64_t>(ctx, "episode_genomes", count);
      const auto seeds = Values<int64_t, uint64_t>(ctx, "episode_seeds", count);
      const auto max_frames = Values<int64_t>(ctx, "episode_max_frames", count);
      const auto normalizers = Values<int64_t>(ctx, "episode_normalizers", count);
      std::vector<QueuedEpisode> episodes;
      episodes.reserve(count);
      for (int64_t e = 0; e < count; ++e) {
        CheckIndex("genome of an episode", genome_of[e], static_cast<int64_t>(genomes.size()));
        if (max_frames[e] < 0) ThrowInvalid("max_frames of episode ", ids[e], " is ", max_frames[e], ", expected >= 0");
        episodes.push_back({ids[e], seeds[e], max_frames[e], genomes[genome_of[e]], normalizers[e]});
      }
      LookupQueue(ctx).Submit(std::move(episodes), Scalar<int64_t>(ctx, "priority"));
    });
  }

 private:
  static std::vector<std::shared_ptr<const GenomeRecipe>> Genomes(OpKernelContext* ctx) {
    const auto ids = Values<int64_t>(ctx, "genome_ids");
    const int64_t count = static_cast<int64_t>(ids.size());
    const auto networks = Values<int32_t>(ctx, "genome_networks", count);
    const auto sources = Values<int64_t>(ctx, "genome_sources", count);
    const auto seeds = Values<int64_t, uint64_t>(ctx, "genome_seeds", count);
    const auto splits = Values<int64_t>(ctx, "chain_splits", count + 1);
    const auto chain_seeds = Values<int64_t, uint64_t>(ctx, "chain_seeds");
    const int64_t mutations = static_cast<int64_t>(chain_seeds.size());
    const auto chain_scales = Values<float>(ctx, "chain_scales", mutations);
    const auto theta_of = Values<int64_t>(ctx, "genome_thetas", count);
    const std::vector<Theta> thetas = Thetas(ctx);
    std::vector<std::shared_ptr<const GenomeRecipe>> genomes;
    genomes.reserve(count);
    for (int64_t g = 0; g < count; ++g) {
      if (splits[g] < 0 || splits[g] > splits[g + 1] || splits[g + 1] > mutations) {
        ThrowInvalid("chain_splits of genome ", g, " are ", splits[g], ", ", splits[g + 1],
                     ", expected ascending in [0, ", mutations, "]");
      }
      auto genome = std::make_shared<GenomeRecipe>();
      genome->id = ids[g];
      genome->source_row = sources[g];
      genome->network = networks[g];
      genome->seed = seeds[g];
      genome->theta = ThetaOf(theta_of[g], thetas);
      for (int64_t m = splits[g]; m < splits[g + 1]; ++m) genome->chain.emplace_back(chain_seeds[m], chain_scales[m]);
      genomes.push_back(std::move(genome));
    }
    return genomes;
  }

  static std::vector<Theta> Thetas(OpKernelContext* ctx) {
    const tensorflow::Tensor* thetas;
    const absl::Status status = ctx->input("thetas", &thetas);
    if (!status.ok()) throw Error(Error::Kind::kInternal, std::string(status.message()));
    if (thetas->dims() != 2) {
      ThrowInvalid("input 'thetas' has shape ", thetas->shape().DebugString(), ", expected [V, W]");
    }
    return SplitThetas(thetas->flat<float>().data(), thetas->dim_size(0), thetas->dim_size(1));
  }
};

class EpisodeQueueTakeOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    RunAsync(ctx, done, [&](Done finish) {
      EpisodeQueue& queue = LookupQueue(ctx);
      const int64_t lane = Scalar<int64_t>(ctx, "lane");
      // A cancelled step (an error elsewhere in the graph, say) must not leave this op waiting for ever.
      tensorflow::CancellationManager* cancellation = ctx->cancellation_manager();
      tensorflow::CancellationToken token = 0;
      if (cancellation != nullptr) {
        token = cancellation->get_cancellation_token();
        if (!cancellation->RegisterCallback(token, [&queue, lane] { queue.CloseLane(lane); })) {
          throw Error(Error::Kind::kCancelled, "the step was cancelled");
        }
      }
      try {
        queue.Take(lane, [ctx, finish, cancellation, token](Refill refill) {
          // Try: the callback may be what is running this, and then it must not wait for itself.
          if (cancellation != nullptr) cancellation->TryDeregisterCallback(token);
          std::exception_ptr error;
          try {
            SetOutputs(ctx, refill);
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
    SetVector<int64_t>(ctx, 6, refill.episodes);
    SetVector<int64_t>(ctx, 7, refill.normalizers);
    SetVector<int64_t>(ctx, 8, refill.assign_rows);
    SetVector<int32_t>(ctx, 9, refill.assign_networks);
    SetThetas(ctx, 10, refill.assign_thetas);
    SetVector<int64_t>(ctx, 11, refill.init_rows);
    SetVector<int32_t>(ctx, 12, refill.init_networks);
    SetVector<int64_t>(ctx, 13, refill.init_seeds);
    SetVector<int64_t>(ctx, 14, refill.perturb_dst);
    SetVector<int64_t>(ctx, 15, refill.perturb_src);
    SetVector<int64_t>(ctx, 16, refill.perturb_seeds);
    SetVector<float>(ctx, 17, refill.perturb_scales);
  }

  // [A, W], W the length of the longest; zeros after a shorter one.
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
      const EpisodeQueue::PutResult result = LookupQueue(ctx).Put(
          Scalar<int64_t>(ctx, "lane"), slots, rewards.flat<double>().data(), dones.flat<bool>().data());
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
      const std::vector<EpisodeOutcome> outcomes = queue.Results(Scalar<int64_t>(ctx, "count"), time);
      SetScalar<int64_t>(ctx, 3, queue.TotalSteps());
      const int64_t count = static_cast<int64_t>(outcomes.size());
      auto ids = Output(ctx, 0, {count})->flat<int64_t>();
      auto returns = Output(ctx, 1, {count})->flat<double>();
      auto steps = Output(ctx, 2, {count})->flat<int64_t>();
      for (int64_t i = 0; i < count; ++i) {
        ids(i) = outcomes[i].id;
        returns(i) = outcomes[i].total_reward;
        steps(i) = outcomes[i].steps;
      }
    });
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
