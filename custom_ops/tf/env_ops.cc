// Registration of the environment ops. Shapes: S slots of the pool, K slots of a call.
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace neuroevo::tf_ops {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

namespace {

// [K, *shape] from the attribute `shape` and the slots [K], input 1.
absl::Status OnePerSlot(InferenceContext* c) {
  ShapeHandle slots, one, out;
  tensorflow::PartialTensorShape shape;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &slots));
  TF_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shape, &one));
  TF_RETURN_IF_ERROR(c->Concatenate(slots, one, &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

}  // namespace

// The options are an input: of attributes that are lists, TensorFlow 2.21 takes long strings for equal whose first and
// last 10 characters are, and gives the kernel that it made for the other one.
REGISTER_OP("EnvPoolMake")
    .Input("options: string")
    .Attr("family: string")
    .Attr("slots: int")
    .Output("handle: resource")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle vector;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &vector));
      return tensorflow::shape_inference::ScalarShape(c);
    })
    .Doc(R"doc(
Makes S environments of one family on the process's thread pool.

options: [any], the family's options, each "key=value".
family: name of a loaded environment family, such as atari.
slots: S, the number of environments.
handle: freed, with its environments, when the last copy of the handle is dropped.
)doc");

REGISTER_OP("EnvPoolSpec")
    .Input("handle: resource")
    .Output("observation_dtype: string")
    .Output("observation_shape: int64")
    .Output("action_dtype: string")
    .Output("num_actions: int64")
    .Output("frame_skip: int64")
    .Output("slots: int64")
    .Output("behavior_dtype: string")
    .Output("behavior_shape: int64")
    .Output("render_shape: int64")
    .Output("action_low: float")
    .Output("action_high: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      for (int i = 0; i < c->num_outputs(); ++i) {
        const bool vector = i == 1 || i >= 7;
        c->set_output(i, vector ? c->Vector(InferenceContext::kUnknownDim) : c->Scalar());
      }
      return absl::OkStatus();
    })
    .Doc(R"doc(
Tells what the pool's environments take and give.

action_dtype: int32 for one discrete action in [0, num_actions), float32 for a vector of num_actions.
frame_skip: emulator frames per step.
behavior_shape: of one behavior; [] if the environment has none.
render_shape: [height, width, 3]; [] if the environment cannot be rendered.
action_low, action_high: [num_actions], what the numbers of a vector are meant to lie between; [0] for discrete actions.
)doc");

REGISTER_OP("EnvReset")
    .Input("handle: resource")
    .Input("slots: int64")
    .Input("seeds: int64")
    .Input("max_frames: int64")
    .Input("normalizers: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle vector;
      for (int i = 1; i < 5; ++i) TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 1, &vector));
      return absl::OkStatus();
    })
    .Doc(R"doc(
Starts an episode in each of the slots. Everything random in an episode follows from its seed.

slots: [K], different, in [0, S).
seeds: [K].
max_frames: [K], emulator frames after which the episode is cut off; 0 for the environment's own limit.
normalizers: [K], numbers given to EnvSetNormalizer, for EnvNormalizedObservation; -1 for none. Or [0]: all -1.
)doc");

REGISTER_OP("EnvSetNormalizer")
    .Input("handle: resource")
    .Input("number: int64")
    .Input("mean: float64")
    .Input("std: float64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle shape;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &shape));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 1, &shape));
      return c->WithRank(c->input(3), 1, &shape);
    })
    .Doc(R"doc(
Makes a normalizer known under a number, for episodes that are reset from then on. Only for observations that are float.

number: 0 or more, and not in use for other values.
mean, std: [n], for the n values of an observation; finite, and std above 0.
)doc");

REGISTER_OP("EnvDropNormalizers")
    .Input("handle: resource")
    .Input("numbers: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle vector;
      return c->WithRank(c->input(1), 1, &vector);
    })
    .Doc(R"doc(
Forgets normalizers. Episodes that have begun with one keep it.

numbers: [M], each set before.
)doc");

REGISTER_OP("EnvRecordBehaviors")
    .Input("handle: resource")
    .Input("every: int64")
    .Input("samples: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle scalar;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &scalar));
      return c->WithRank(c->input(2), 0, &scalar);
    })
    .Doc(R"doc(
Records the behavior of every episode, for EpisodeQueuePut; before the first EnvReset.

every: 0 for the behavior when the episode ends; else for a trajectory, one behavior after each `every` steps.
samples: of a trajectory; those after the episode's end are the last state once more.
)doc");

REGISTER_OP("EnvActions")
    .Input("handle: resource")
    .Input("outputs: float")
    .Output("actions: T")
    .Attr("T: {int32, float}")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle outputs;
      tensorflow::DataType dtype;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &outputs));
      TF_RETURN_IF_ERROR(c->GetAttr("T", &dtype));
      const auto k = c->Dim(outputs, 0);
      c->set_output(0, dtype == tensorflow::DT_INT32 ? c->Vector(k) : c->Matrix(k, c->UnknownDim()));
      return absl::OkStatus();
    })
    .Doc(R"doc(
The actions that the networks' outputs stand for.

outputs: [K, W]. Of discrete actions W is their number, and an action the index of the first maximum. Of vectors of A
  numbers within bounds, W is A: low + (clip(x, -1, 1) + 1) / 2 * (high - low), or x itself without finite bounds; or W
  is A * B for B >= 2 bins a number: low + b * (high - low) / (B - 1), b the index of the first maximum of its outputs.
actions: int32 [K], or float32 [K, A], as EnvStep takes them. NaN where all outputs of a number are NaN.
)doc");

REGISTER_OP("EnvStep")
    .Input("handle: resource")
    .Input("slots: int64")
    .Input("actions: T")
    .Output("rewards: float64")
    .Output("dones: bool")
    .Output("truncations: bool")
    .Attr("T: {int32, float}")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle slots;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &slots));
      for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, slots);
      return absl::OkStatus();
    })
    .Doc(R"doc(
Steps the environments of the slots.

slots: [K], different, in [0, S), each reset and not done since.
actions: int32 [K] in [0, num_actions), or float32 [K, num_actions]. A number that is not finite ends its slot's
  episode, with reward 0 and a failure; a wrong index is an error.
rewards: [K]. dones: [K], whether the episode ended with this step. truncations: [K], whether it ended by the cut-off
  alone.
)doc");

REGISTER_OP("EnvObservation")
    .Input("handle: resource")
    .Input("slots: int64")
    .Output("observations: dtype")
    .Attr("dtype: {uint8, float, double}")
    .Attr("shape: shape")
    .SetIsStateful()
    .SetShapeFn(OnePerSlot)
    .Doc(R"doc(
Observations of the slots' environments, written once, into this tensor.

slots: [K], different, in [0, S), each reset at least once.
dtype, shape: of one observation, as EnvPoolSpec tells.
observations: [K, *shape].
)doc");

REGISTER_OP("EnvNormalizedObservation")
    .Input("handle: resource")
    .Input("slots: int64")
    .Output("observations: float")
    .Attr("shape: shape")
    .SetIsStateful()
    .SetShapeFn(OnePerSlot)
    .Doc(R"doc(
Observations of the slots' environments as float32, each less the mean and divided by the standard deviation of the
normalizer that its episode was reset with, within [-5, 5]; as they are without one. What is shown of an episode with a
normalizer counts in its observation sums, which EpisodeQueuePut takes. Only for observations that are float.

slots: [K], different, in [0, S), each reset at least once.
shape: of one observation, as EnvPoolSpec tells.
observations: [K, *shape].
)doc");

REGISTER_OP("EnvBehavior")
    .Input("handle: resource")
    .Input("slots: int64")
    .Output("behaviors: dtype")
    .Attr("dtype: {uint8, float, double}")
    .Attr("shape: shape")
    .SetIsStateful()
    .SetShapeFn(OnePerSlot)
    .Doc(R"doc(
What characterizes the slots' environments as they are now, for novelty search: of Atari, the console's
memory; of MuJoCo, x and y of the robot's torso, of what it moves, or of its fingertip; of a maze, those of the robot.

slots: [K], different, in [0, S), each reset at least once.
dtype, shape: of one behavior, as EnvPoolSpec tells.
behaviors: [K, *shape].
)doc");

REGISTER_OP("EnvRender")
    .Input("handle: resource")
    .Input("slots: int64")
    .Output("screens: uint8")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle slots;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &slots));
      c->set_output(0, c->MakeShape({c->Dim(slots, 0), c->UnknownDim(), c->UnknownDim(), 3}));
      return absl::OkStatus();
    })
    .Doc(R"doc(
The slots' current screens: red, green, blue.

slots: [K], different, in [0, S), each reset at least once.
screens: [K, height, width, 3], as EnvPoolSpec's render_shape tells.
)doc");

}  // namespace neuroevo::tf_ops
