// CPU kernels of the environment ops.
#include "envs/actions.h"
#include "envs/env_pool.h"
#include "tf/kernel_util.h"

namespace neuroevo::tf_ops {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::TensorShape;

constexpr char kPool[] = "an env pool";

class EnvPoolMakeOp : public OpKernel {
 public:
  explicit EnvPoolMakeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("family", &family_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("slots", &slots_));
  }

  void Compute(OpKernelContext* ctx) override {
    MakeResource<EnvPool>(ctx, [&] {
      return new Resource<EnvPool>(family_, ParseEnvOptions(Strings(ctx, "options")), slots_, ProcessPool());
    });
  }

 private:
  std::string family_;
  int64_t slots_;
};

class EnvPoolSpecOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      EnvPool& pool = Lookup<EnvPool>(ctx, kPool);
      const EnvSpec& spec = pool.spec();
      SetScalar<tensorflow::tstring>(ctx, 0, NameOf(spec.observation_dtype));
      SetVector<int64_t>(ctx, 1, spec.observation_shape);
      SetScalar<tensorflow::tstring>(ctx, 2, NameOf(spec.action_dtype));
      SetScalar<int64_t>(ctx, 3, spec.num_actions);
      SetScalar<int64_t>(ctx, 4, spec.frame_skip);
      SetScalar<int64_t>(ctx, 5, pool.slots());
      SetScalar<tensorflow::tstring>(ctx, 6, NameOf(spec.behavior_dtype));
      SetVector<int64_t>(ctx, 7, spec.behavior_shape);
      SetVector<int64_t>(ctx, 8, spec.render_shape);
      SetVector<float>(ctx, 9, spec.action_low);
      SetVector<float>(ctx, 10, spec.action_high);
    });
  }
};

class EnvResetOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      const auto slots = Values<int64_t>(ctx, "slots");
      const int64_t k = static_cast<int64_t>(slots.size());
      const auto seeds = Values<int64_t, uint64_t>(ctx, "seeds", k);
      const auto max_frames = Values<int64_t>(ctx, "max_frames", k);
      Lookup<EnvPool>(ctx, kPool).Reset(slots, seeds, max_frames, Values<int64_t>(ctx, "normalizers"));
    });
  }
};

class EnvActionsOp : public OpKernel {
 public:
  explicit EnvActionsOp(OpKernelConstruction* ctx) : OpKernel(ctx) { OP_REQUIRES_OK(ctx, ctx->GetAttr("T", &dtype_)); }
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      EnvPool& pool = Lookup<EnvPool>(ctx, kPool);
      const tensorflow::Tensor& outputs = ctx->input(1);
      if (outputs.dims() != 2) {
        ThrowInvalid("input 'outputs' has shape ", outputs.shape().DebugString(), ", expected [K, W]");
      }
      if (dtype_ != ToTf(pool.spec().action_dtype)) {
        ThrowInvalid("attr 'T' is ", tensorflow::DataTypeString(dtype_), ", expected ",
                     NameOf(pool.spec().action_dtype));
      }
      CheckOutputs(pool.spec(), outputs.dim_size(1));  // rejects W = 0, for which K might be too large for a shape
      TensorShape shape({outputs.dim_size(0)});
      if (!pool.spec().discrete()) shape.AddDim(pool.spec().num_actions);
      void* actions = const_cast<char*>(Output(ctx, 0, shape)->tensor_data().data());
      pool.Actions(outputs.flat<float>().data(), outputs.dim_size(0), outputs.dim_size(1), actions);
    });
  }

 private:
  tensorflow::DataType dtype_;
};

class EnvStepOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      EnvPool& pool = Lookup<EnvPool>(ctx, kPool);
      const auto slots = Values<int64_t>(ctx, "slots");
      const int64_t k = static_cast<int64_t>(slots.size());
      TensorShape action_shape({k});
      if (!pool.spec().discrete()) action_shape.AddDim(pool.spec().num_actions);
      const auto& actions = Checked(ctx, "actions", ToTf(pool.spec().action_dtype), action_shape);
      double* rewards = Output(ctx, 0, {k})->flat<double>().data();
      bool* dones = Output(ctx, 1, {k})->flat<bool>().data();
      bool* truncations = Output(ctx, 2, {k})->flat<bool>().data();
      pool.Step(slots, actions.tensor_data().data(), rewards, dones, truncations);
    });
  }
};

class EnvSetNormalizerOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      Lookup<EnvPool>(ctx, kPool)
          .SetNormalizer(Scalar<int64_t>(ctx, "number"), Values<double>(ctx, "mean"), Values<double>(ctx, "std"));
    });
  }
};

class EnvDropNormalizersOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] { Lookup<EnvPool>(ctx, kPool).DropNormalizers(Values<int64_t>(ctx, "numbers")); });
  }
};

class EnvRecordBehaviorsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      Lookup<EnvPool>(ctx, kPool).RecordBehaviors(Scalar<int64_t>(ctx, "every"), Scalar<int64_t>(ctx, "samples"));
    });
  }
};

// Base class of ops that copy one array per slot into an output [K, *shape].
class CopyOutOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      EnvPool& pool = Lookup<EnvPool>(ctx, kPool);
      const TensorShape one = ShapeOfOne(pool.spec());
      const auto slots = Values<int64_t>(ctx, "slots");
      TensorShape shape({static_cast<int64_t>(slots.size())});
      shape.AppendShape(one);
      void* out = const_cast<char*>(Output(ctx, 0, shape)->tensor_data().data());
      CopyOut(&pool, slots, out);
    });
  }

 protected:
  virtual TensorShape ShapeOfOne(const EnvSpec& spec) const = 0;  // throws if unsupported or attributes mismatch
  virtual void CopyOut(EnvPool* pool, const std::vector<int64_t>& slots, void* out) = 0;
};

// Copying ops whose shape is an attribute.
class ShapedCopyOutOp : public CopyOutOp {
 public:
  explicit ShapedCopyOutOp(OpKernelConstruction* ctx) : CopyOutOp(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("shape", &shape_));
  }

 protected:
  TensorShape CheckShape(const std::vector<int64_t>& shape) const {
    const TensorShape expected(shape);
    if (!shape_.IsCompatibleWith(expected)) {
      ThrowInvalid("attr 'shape' is ", shape_.DebugString(), ", expected ", expected.DebugString());
    }
    return expected;
  }

 private:
  tensorflow::PartialTensorShape shape_;
};

// Copying ops whose shape and dtype are attributes.
class TypedCopyOutOp : public ShapedCopyOutOp {
 public:
  explicit TypedCopyOutOp(OpKernelConstruction* ctx) : ShapedCopyOutOp(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype_));
  }

 protected:
  TensorShape CheckAttributes(DType dtype, const std::vector<int64_t>& shape) const {
    if (dtype_ != ToTf(dtype)) {
      ThrowInvalid("attr 'dtype' is ", tensorflow::DataTypeString(dtype_), ", expected ", NameOf(dtype));
    }
    return CheckShape(shape);
  }

 private:
  tensorflow::DataType dtype_;
};

class EnvObservationOp : public TypedCopyOutOp {
 public:
  using TypedCopyOutOp::TypedCopyOutOp;

 protected:
  TensorShape ShapeOfOne(const EnvSpec& spec) const override {
    return CheckAttributes(spec.observation_dtype, spec.observation_shape);
  }
  void CopyOut(EnvPool* pool, const std::vector<int64_t>& slots, void* out) override { pool->Observe(slots, out); }
};

class EnvNormalizedObservationOp : public ShapedCopyOutOp {
 public:
  using ShapedCopyOutOp::ShapedCopyOutOp;

 protected:
  TensorShape ShapeOfOne(const EnvSpec& spec) const override { return CheckShape(spec.observation_shape); }
  void CopyOut(EnvPool* pool, const std::vector<int64_t>& slots, void* out) override {
    pool->ObserveNormalized(slots, static_cast<float*>(out));
  }
};

class EnvBehaviorOp : public TypedCopyOutOp {
 public:
  using TypedCopyOutOp::TypedCopyOutOp;

 protected:
  TensorShape ShapeOfOne(const EnvSpec& spec) const override {
    spec.behavior_bytes();  // throws if the environment has no behavior
    return CheckAttributes(spec.behavior_dtype, spec.behavior_shape);
  }
  void CopyOut(EnvPool* pool, const std::vector<int64_t>& slots, void* out) override { pool->Behavior(slots, out); }
};

class EnvRenderOp : public CopyOutOp {
 public:
  using CopyOutOp::CopyOutOp;

 protected:
  TensorShape ShapeOfOne(const EnvSpec& spec) const override {
    spec.render_bytes();  // throws if the environment cannot be rendered
    return TensorShape(spec.render_shape);
  }
  void CopyOut(EnvPool* pool, const std::vector<int64_t>& slots, void* out) override {
    pool->Render(slots, static_cast<uint8_t*>(out));
  }
};

REGISTER_KERNEL_BUILDER(Name("EnvPoolMake").Device(tensorflow::DEVICE_CPU), EnvPoolMakeOp);
REGISTER_KERNEL_BUILDER(Name("EnvPoolSpec").Device(tensorflow::DEVICE_CPU), EnvPoolSpecOp);
REGISTER_KERNEL_BUILDER(Name("EnvReset").Device(tensorflow::DEVICE_CPU), EnvResetOp);
REGISTER_KERNEL_BUILDER(Name("EnvActions").Device(tensorflow::DEVICE_CPU), EnvActionsOp);
REGISTER_KERNEL_BUILDER(Name("EnvSetNormalizer").Device(tensorflow::DEVICE_CPU), EnvSetNormalizerOp);
REGISTER_KERNEL_BUILDER(Name("EnvDropNormalizers").Device(tensorflow::DEVICE_CPU), EnvDropNormalizersOp);
REGISTER_KERNEL_BUILDER(Name("EnvRecordBehaviors").Device(tensorflow::DEVICE_CPU), EnvRecordBehaviorsOp);
REGISTER_KERNEL_BUILDER(Name("EnvStep").Device(tensorflow::DEVICE_CPU), EnvStepOp);
REGISTER_KERNEL_BUILDER(Name("EnvObservation").Device(tensorflow::DEVICE_CPU), EnvObservationOp);
REGISTER_KERNEL_BUILDER(Name("EnvNormalizedObservation").Device(tensorflow::DEVICE_CPU), EnvNormalizedObservationOp);
REGISTER_KERNEL_BUILDER(Name("EnvBehavior").Device(tensorflow::DEVICE_CPU), EnvBehaviorOp);
REGISTER_KERNEL_BUILDER(Name("EnvRender").Device(tensorflow::DEVICE_CPU), EnvRenderOp);

}  // namespace
}  // namespace neuroevo::tf_ops
