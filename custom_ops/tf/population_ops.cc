// Registration of the population ops. Shapes: R rows of the population, K rows of a call, D weights, A outputs.
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace neuroevo::tf_ops {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

namespace {

// Shape function of ops without outputs whose inputs after the handle are vectors.
absl::Status VectorsIn(InferenceContext* c) {
  ShapeHandle vector;
  for (int i = 1; i < c->num_inputs(); ++i) TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 1, &vector));
  return absl::OkStatus();
}

// Shape function of forward ops: rows [K], observations [K, ...] and optionally states [K]; outputs [K, A].
absl::Status ForwardShape(InferenceContext* c) {
  ShapeHandle rows, observations;
  tensorflow::shape_inference::DimensionHandle k;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &rows));
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(2), 2, &observations));
  TF_RETURN_IF_ERROR(c->Merge(c->Dim(rows, 0), c->Dim(observations, 0), &k));
  if (c->num_inputs() > 3) TF_RETURN_IF_ERROR(c->Merge(rows, c->input(3), &rows));
  c->set_output(0, c->Matrix(k, InferenceContext::kUnknownDim));
  return absl::OkStatus();
}

}  // namespace

// The networks are an input for the reason given in env_ops.cc.
REGISTER_OP("PopulationMake")
    .Input("networks: string")
    .Attr("rows: int")
    .Attr("backend: string = 'cpu'")
    .Attr("dtype: {float, int8} = DT_FLOAT")
    .Attr("float_rows: int = -1")
    .Attr("rank: int = 0")
    .Output("handle: resource")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle vector;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &vector));
      return tensorflow::shape_inference::ScalarShape(c);
    })
    .Doc(R"doc(
Create R rows of weights. Each row belongs to one of the networks, so that one call can evaluate several architectures.

networks: [at least 1], layer lists in text form; equal input and output sizes.
rows: R. A row takes memory only after it is written.
backend: cpu, or reference (slow and readable, bit-identical).
dtype: float, or int8: networks are evaluated in integers, and a row holds one byte per weight.
float_rows: with int8, rows [0, float_rows) also hold float weights, which PopulationRead and PopulationPerturb need
  in a source row; -1: all rows. With float, used only if rank > 0.
rank: with float, rows from float_rows on are members of this rank: they refer to one of the other rows, their center,
  and only PopulationPerturb fills them. 0: no such rows.
handle: resource of the population, freed with its rows when the last copy of the handle is dropped.
)doc");

REGISTER_OP("PopulationDimensions")
    .Input("handle: resource")
    .Output("dimensions: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(InferenceContext::kUnknownDim));
      return absl::OkStatus();
    })
    .Doc("dimensions: D of each of the population's networks.");

REGISTER_OP("PopulationInit")
    .Input("handle: resource")
    .Input("rows: int64")
    .Input("networks: int32")
    .Input("seeds: int64")
    .SetIsStateful()
    .SetShapeFn(VectorsIn)
    .Doc(R"doc(
Fill rows with initial weights: noise(seed) * std / sqrt(fan_in), biases 0.

rows: [K], distinct, in [0, R).
networks: [K], index of each row's network.
seeds: [K].
)doc");

REGISTER_OP("PopulationAssign")
    .Input("handle: resource")
    .Input("rows: int64")
    .Input("networks: int32")
    .Input("thetas: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle in;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &in));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 1, &in));
      return c->WithRank(c->input(3), 2, &in);
    })
    .Doc(R"doc(
Fill rows with given weights.

rows: [K], distinct, in [0, R).
networks: [K], index of each row's network.
thetas: [K, max D]; the first D values of each row are used, with D of its network. If K = 0, the width is arbitrary.
)doc");

REGISTER_OP("PopulationRead")
    .Input("handle: resource")
    .Input("rows: int64")
    .Output("thetas: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle rows;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &rows));
      c->set_output(0, c->Matrix(c->Dim(rows, 0), InferenceContext::kUnknownDim));
      return absl::OkStatus();
    })
    .Doc("thetas: [K, max D], the weights of the rows, zero-padded for networks with a smaller D.");

REGISTER_OP("PopulationPerturb")
    .Input("handle: resource")
    .Input("dst: int64")
    .Input("src: int64")
    .Input("seeds: int64")
    .Input("scales: float")
    .Input("spreads: int64")
    .SetIsStateful()
    .SetShapeFn(VectorsIn)
    .Doc(R"doc(
In list order: theta of dst = theta of src + scale * noise(seed). dst may equal src; later entries use the results of
earlier ones. If all rows of dst are low-rank members, src becomes their center and must not change while they are used.

dst, src: [K], in [0, R).
seeds, scales: [K].
spreads: [K], rows in [0, R) of per-weight factors of the scales, not written by any entry; or -1.
)doc");

REGISTER_OP("PopulationSetReference")
    .Input("handle: resource")
    .Input("observations: T")
    .Attr("T: {uint8, float}")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle observations;
      return c->WithRankAtLeast(c->input(1), 2, &observations);
    })
    .Doc(R"doc(
Set the reference batch for the statistics of all vbn layers; once, before any row is prepared.

observations: [B, ...], of the networks' input dtype and shape.
)doc");

REGISTER_OP("PopulationPrepare")
    .Input("handle: resource")
    .Input("rows: int64")
    .SetIsStateful()
    .SetShapeFn(VectorsIn)
    .Doc(R"doc(
Compute the statistics of the rows' vbn layers by evaluating each row's network on the reference batch. Rows whose
networks have vbn must be prepared after they are filled and before they are played.

rows: [K], in [0, R), filled; may repeat. Rows already prepared and rows of networks without vbn cost nothing.
)doc");

REGISTER_OP("PopulationForward")
    .Input("handle: resource")
    .Input("rows: int64")
    .Input("observations: T")
    .Output("outputs: float")
    .Attr("T: {uint8, float}")
    .SetIsStateful()
    .SetShapeFn(ForwardShape)
    .Doc(R"doc(
Evaluate K networks in one call; no other row is read, so a finished episode costs nothing.

rows: [K], in [0, R); may repeat: slots that share a row share its weight reads.
observations: [K, ...], of the networks' input dtype and shape.
outputs: [K, A]; each depends only on its row and observation, bit for bit. With int8, the sums of the last layer as
  floats: distinct sums below 255 * 2^16 remain distinct.
)doc");

REGISTER_OP("PopulationForwardSlots")
    .Input("handle: resource")
    .Input("rows: int64")
    .Input("observations: T")
    .Input("slots: int64")
    .Output("outputs: float")
    .Attr("T: {uint8, float}")
    .SetIsStateful()
    .SetShapeFn(ForwardShape)
    .Doc(R"doc(
Like PopulationForward, for the slots of running episodes. Recurrent networks read and update their slots' states. For
other networks a backend may compute only the changes since the slot's last observation.

rows: [K], in [0, R); may repeat.
observations: [K, ...], of the networks' input dtype and shape.
slots: [K], in [0, R), distinct; for recurrent networks, their states must have been cleared before the first use.
outputs: [K, A]; each depends only on its row, observation and state, bit for bit.
)doc");

REGISTER_OP("PopulationClearStates")
    .Input("handle: resource")
    .Input("states: int64")
    .SetIsStateful()
    .SetShapeFn(VectorsIn)
    .Doc(R"doc(
Set states of recurrent networks to zero, required at the start of an episode; no cost for other networks.

states: [K], in [0, R).
)doc");

}  // namespace neuroevo::tf_ops
