// Registration of the environment ops. Shapes: S slots of the pool, K slots of a call.
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace neuroevo::tf_ops {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

namespace {

// Infer the output shape [K, *shape] from the attribute `shape` and input 1, the slots [K].
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

// The options are an input, because TensorFlow 2.21 treats long strings in list attributes as equal if their first and
// last 10 characters are equal, and then reuses the wrong kernel.
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
Create S environments of one family on the process's thread pool.

options: [any], the family's options, each "key=value".
family: name of a loaded environment family, such as atari.
slots: S, the number of environments.
handle: resource of the pool, freed with its environments when the last copy of the handle is dropped.
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
Return the specification of the pool's environments.

action_dtype: int32 for one discrete action in [0, num_actions), float32 for a vector of num_actions.
frame_skip: emulator frames per step.
behavior_shape: shape of one behavior; [] if the environment has no behavior.
render_shape: [height, width, 3]; [] if the environment cannot be rendered.
action_low, action_high: [num_actions], bounds of the components of an action vector; [0] for discrete actions.
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
Start an episode in each of the slots. All randomness in an episode is derived from its seed.

slots: [K], distinct, in [0, S).
seeds: [K].
max_frames: [K], emulator frames after which the episode is cut off; 0 for the environment's own limit.
normalizers: [K], numbers set by EnvSetNormalizer, for EnvNormalizedObservation; -1 for no normalizer. Or [0]: all -1.
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
Register a normalizer under a number, for episodes reset afterward. Requires floating-point observations.

number: 0 or more, and not registered with different values.
mean, std: [n], for the n values of an observation; finite, with std > 0.
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
Remove normalizers. Running episodes keep their normalizer.

numbers: [M], numbers of registered normalizers.
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
Record the behavior of every episode, for EpisodeQueuePut. Must run before the first EnvReset.

every: 0 for the behavior at the end of the episode; otherwise a trajectory, one behavior after each `every` steps.
samples: number of samples of a trajectory; samples after the episode's end repeat the last state.
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
Convert the networks' outputs to actions.

outputs: [K, W]. Discrete actions: W is num_actions, and the action is the index of the first maximum. Vectors of A
  components, with W = A: low + (clip(x, -1, 1) + 1) / 2 * (high - low), or x itself without finite bounds; with
  W = A * B, B >= 2 bins per component: low + b * (high - low) / (B - 1), b the index of the bins' first maximum.
actions: int32 [K], or float32 [K, A], the input of EnvStep. NaN if all outputs of a component are NaN.
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
Step the environments of the slots.

slots: [K], distinct, in [0, S), each with a running episode.
actions: int32 [K] in [0, num_actions), or float32 [K, num_actions]. A non-finite component ends its slot's episode with
  reward 0 and a failure; an index out of range is an error.
rewards: [K]. dones: [K], whether the episode ended with this step. truncations: [K], whether it was truncated but not
  terminated.
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
Return the observations of the slots' environments, written directly into the output tensor.

slots: [K], distinct, in [0, S), each reset at least once.
dtype, shape: those of one observation, from EnvPoolSpec.
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
Return the observations of the slots' environments as float32, normalized by the mean and standard deviation of the
episode's normalizer and clipped to [-5, 5], or unchanged for episodes without a normalizer. Each returned observation
of an episode with a normalizer is added to its observation sums, for EpisodeQueuePut. Requires floating-point
observations.

slots: [K], distinct, in [0, S), each reset at least once.
shape: shape of one observation, from EnvPoolSpec.
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
Return the current behaviors of the slots' environments, for novelty search. Atari: the console's RAM. MuJoCo: x and y
of the robot's torso, of the object that it moves, or of its fingertip. Hard maze: x and y of the robot.

slots: [K], distinct, in [0, S), each reset at least once.
dtype, shape: those of one behavior, from EnvPoolSpec.
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
Render the slots' current screens as RGB.

slots: [K], distinct, in [0, S), each reset at least once.
screens: [K, height, width, 3], with the render_shape of EnvPoolSpec.
)doc");

}  // namespace neuroevo::tf_ops
