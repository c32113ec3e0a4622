// Registration of the population ops. Shapes: R rows of the population, K rows of a call, D weights, A outputs.
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace neuroevo::tf_ops {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

namespace {

// All inputs after the handle are vectors; there are no outputs.
absl::Status VectorsIn(InferenceContext* c) {
  ShapeHandle vector;
  for (int i = 1; i < c->num_inputs(); ++i) TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 1, &vector));
  return absl::OkStatus();
}

// Rows [K], observations [K, ...] and perhaps states [K] after the handle; outputs [K, A].
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

// The networks are an input for the reason given at EnvPoolMake.
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
Makes R rows of weights. Each row belongs to one of the networks, so that different architectures play in one call.

networks: [at least 1], layer lists in text form; equal input and output sizes.
rows: R. A row takes memory once it is written.
backend: cpu, or reference (slow, written to be read, bit-equal).
dtype: float, or int8: networks are evaluated in integers, and a row holds one byte a weight.
float_rows: with int8, rows [0, float_rows) hold float weights too, which PopulationRead and PopulationPerturb need of
  a source; -1: all rows do. With float it counts where there is a rank.
rank: with float, rows from float_rows on are members of this rank: they refer to one of the other rows, their center,
  and only PopulationPerturb fills them. 0: there are none.
handle: freed, with its rows, when the last copy of the handle is dropped.
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
Fills rows with initial weights: noise(seed) * std / sqrt(fan_in), biases 0.

rows: [K], different, in [0, R).
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
Fills rows with given weights.

rows: [K], different, in [0, R).
networks: [K], index of each row's network.
thetas: [K, max D]; of each the first D of its network are used. For K = 0, of any width.
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
    .Doc("thetas: [K, max D], the weights of the rows; zeros after the D of a smaller network.");

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
In list order: theta of dst = theta of src + scale * noise(seed). dst may equal src; later entries see earlier ones.
Where all of dst are members, they become members of src, which must stay as it is as long as they are used.

dst, src: [K], in [0, R).
seeds, scales: [K].
spreads: [K], rows in [0, R) that multiply the scales weight by weight, which no entry writes; or -1.
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
Sets what the vbn layers of all rows take their statistics of; once, before any row is prepared.

observations: [B, ...], of the networks' input dtype and shape.
)doc");

REGISTER_OP("PopulationPrepare")
    .Input("handle: resource")
    .Input("rows: int64")
    .SetIsStateful()
    .SetShapeFn(VectorsIn)
    .Doc(R"doc(
Computes the statistics of the rows' vbn layers by running each row's network over the reference batch. Rows whose
networks have vbn must be prepared after they are filled and before they are played.

rows: [K], in [0, R), filled; may repeat. One that is prepared already or whose network has no vbn costs nothing.
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
Evaluates K networks in one call; no other row is touched, so a finished episode costs nothing.

rows: [K], in [0, R); may repeat: slots that share a row share its weight reads.
observations: [K, ...], of the networks' input dtype and shape.
outputs: [K, A]; each depends on its row and observation alone, bit for bit. With int8, the sums of the last layer as
  float numbers: different sums below 255 * 2^16 are different numbers.
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
As PopulationForward, for slots that go on playing. Recurrent networks go on from their slots' states and leave the next
ones there. Of others a backend may compute only what has changed since the slot's last observation.

rows: [K], in [0, R); may repeat.
observations: [K, ...], of the networks' input dtype and shape.
slots: [K], in [0, R), different; of recurrent networks with states that have been cleared.
outputs: [K, A]; each depends on its row, observation and state alone, bit for bit.
)doc");

REGISTER_OP("PopulationClearStates")
    .Input("handle: resource")
    .Input("states: int64")
    .SetIsStateful()
    .SetShapeFn(VectorsIn)
    .Doc(R"doc(
Makes states of recurrent networks zeros, as they are to be when an episode begins; others cost nothing.

states: [K], in [0, R).
)doc");

}  // namespace neuroevo::tf_ops
