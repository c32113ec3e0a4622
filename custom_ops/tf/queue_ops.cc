// Registration of the episode queue's ops. Shapes: E episodes, G genomes, M mutations, K live slots of a lane.
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace neuroevo::tf_ops {

using tensorflow::shape_inference::InferenceContext;

namespace {

absl::Status VectorsOut(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->Vector(InferenceContext::kUnknownDim));
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("EpisodeQueueMake")
    .Attr("lanes: int")
    .Attr("slots_per_lane: int")
    .Attr("first_row: int")
    .Output("handle: resource")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Create a queue that schedules episodes on lanes. Lane l has slots [l * slots_per_lane, (l + 1) * slots_per_lane) and as
many rows of the population, starting at first_row + l * slots_per_lane.
)doc");

REGISTER_OP("EpisodeQueueSubmit")
    .Input("handle: resource")
    .Input("episode_ids: int64")
    .Input("episode_genomes: int64")
    .Input("episode_seeds: int64")
    .Input("episode_max_frames: int64")
    .Input("episode_normalizers: int64")
    .Input("genome_ids: int64")
    .Input("genome_networks: int32")
    .Input("genome_sources: int64")
    .Input("genome_seeds: int64")
    .Input("genome_thetas: int64")
    .Input("chain_splits: int64")
    .Input("chain_seeds: int64")
    .Input("chain_scales: float")
    .Input("chain_spreads: int64")
    .Input("thetas: float")
    .Input("priority: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Append E episodes of G genomes. custom_ops/rollout/submission.h lists the checks.

episode_ids: [E], 0 or more.
episode_genomes: [E], index in [0, G).
episode_seeds, episode_max_frames: [E], inputs of EnvReset.
episode_normalizers: [E], numbers set by EnvSetNormalizer, or -1 for no normalizer.
genome_ids: [G]; equal ids mean equal weights for the lifetime of the queue.
genome_networks: [G].
genome_sources: [G], a row of the population to start from, or -1 for the initial weights of genome_seeds.
genome_thetas: [G], index in [0, V) of the weights to start from instead, with source -1; or -1.
chain_splits: [G + 1], ascending from 0 to M: the mutations of genome g are [chain_splits[g], chain_splits[g + 1])
  of chain_seeds, chain_scales, chain_spreads.
chain_seeds, chain_scales, chain_spreads: [M], inputs of PopulationPerturb; spreads are rows before first_row, or -1.
thetas: [V, W], weights with W = max D, the format of PopulationAssign.
priority: lower numbers are played first, equal ones in order of submission.
)doc");

REGISTER_OP("EpisodeQueueTake")
    .Input("handle: resource")
    .Input("lane: int64")
    .Output("closed: bool")
    .Output("live_slots: int64")
    .Output("live_rows: int64")
    .Output("slots: int64")
    .Output("seeds: int64")
    .Output("max_frames: int64")
    .Output("normalizers: int64")
    .Output("assign_rows: int64")
    .Output("assign_networks: int32")
    .Output("assign_thetas: float")
    .Output("init_rows: int64")
    .Output("init_networks: int32")
    .Output("init_seeds: int64")
    .Output("perturb_dst: int64")
    .Output("perturb_src: int64")
    .Output("perturb_seeds: int64")
    .Output("perturb_scales: float")
    .Output("perturb_spreads: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      TF_RETURN_IF_ERROR(VectorsOut(c));
      c->set_output(0, c->Scalar());
      c->set_output(9, c->Matrix(InferenceContext::kUnknownDim, InferenceContext::kUnknownDim));
      return absl::OkStatus();
    })
    .Doc(R"doc(
Assign the next episodes to the lane's free slots. Waits, without blocking a thread, while the lane has nothing to play.

closed: whether the queue is closed; then the lane must stop.
live_slots, live_rows: [K], all live slots after this op, ascending, and their rows.
slots, seeds, max_frames, normalizers: episodes to start, inputs of EnvReset.
assign_*, init_*, perturb_*: rows to fill first, in this order. assign_thetas: [A, max D], [0, 0] if A = 0.
)doc");

REGISTER_OP("EpisodeQueuePut")
    .Input("handle: resource")
    .Input("env_pool: resource")
    .Input("lane: int64")
    .Input("slots: int64")
    .Input("rewards: float64")
    .Input("dones: bool")
    .Output("live_slots: int64")
    .Output("live_rows: int64")
    .Output("refill: bool")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      TF_RETURN_IF_ERROR(VectorsOut(c));
      c->set_output(2, c->Scalar());
      return absl::OkStatus();
    })
    .Doc(R"doc(
Record one step: add rewards, count steps, and store the results of finished episodes with the env pool's reports.

env_pool: the pool whose EnvStep performed the step.
slots, rewards, dones: [K], of that step.
live_slots, live_rows: [K], the slots that are still live and their rows.
refill: whether EpisodeQueueTake should run before the next step.
)doc");

REGISTER_OP("EpisodeQueueResults")
    .Input("handle: resource")
    .Input("count: int64")
    .Input("milliseconds: int64")
    .Output("episode_ids: int64")
    .Output("returns: float64")
    .Output("steps: int64")
    .Output("failures: string")
    .Output("retries: int64")
    .Output("observation_sums: float64")
    .Output("behaviors: uint8")
    .Output("total_steps: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      TF_RETURN_IF_ERROR(VectorsOut(c));
      for (int i : {5, 6}) {
        c->set_output(i, c->Matrix(InferenceContext::kUnknownDim, InferenceContext::kUnknownDim));
      }
      c->set_output(7, c->Scalar());
      return absl::OkStatus();
    })
    .Doc(R"doc(
Return the results since the last call, in the order in which the episodes ended.

count, milliseconds: wait until `count` results are available, the time has elapsed or the queue is closed. This blocks
  the thread, so a graph that runs lanes should not contain this op.
episode_ids, returns, steps: [E].
failures: [E], reason why an episode was aborted, a non-finite action or a failed simulation; "" if it was not.
retries: [E], number of times that an episode was replayed after a transient failure of its environment.
observation_sums: [E, 1 + 2n], statistics of the observations of EnvNormalizedObservation before normalization:
  count, sums of the n values, sums of squares. 0 for episodes without a normalizer; [E, 0] if no episode had one.
behaviors: [E, bytes], concatenated samples with the behavior_dtype and behavior_shape of EnvPoolSpec. 0 for failed
  episodes; [E, 0] if behaviors are not recorded.
total_steps: steps of all lanes since the queue was created, including unfinished episodes.
)doc");

REGISTER_OP("EpisodeQueueClose")
    .Input("handle: resource")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc("End every lane at its next refill or waiting take; queued and running episodes are dropped.");

}  // namespace neuroevo::tf_ops
