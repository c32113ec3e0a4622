// CPU kernels of the environment ops.
#include "envs/env_pool.h"
#include "tf/kernel_util.h"

namespace neuroevo::tf_ops {
namespace {

using tensorflow::AsyncOpKernel;
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
    });
  }
};

class EnvResetOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    RunAsync(ctx, done, [&](Done finish) {
      auto slots = Values<int64_t>(ctx, "slots");
      const int64_t k = static_cast<int64_t>(slots.size());
      auto seeds = Values<int64_t, uint64_t>(ctx, "seeds", k);
      auto max_frames = Values<int64_t>(ctx, "max_frames", k);
      Lookup<EnvPool>(ctx, kPool).Reset(std::move(slots), std::move(seeds), std::move(max_frames), std::move(finish));
    });
  }
};

class EnvStepOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    RunAsync(ctx, done, [&](Done finish) {
      EnvPool& pool = Lookup<EnvPool>(ctx, kPool);
      auto slots = Values<int64_t>(ctx, "slots");
      const int64_t k = static_cast<int64_t>(slots.size());
      TensorShape action_shape({k});
      if (!pool.spec().discrete()) action_shape.AddDim(pool.spec().num_actions);
      const auto& actions = Checked(ctx, "actions", ToTf(pool.spec().action_dtype), action_shape);
      double* rewards = Output(ctx, 0, {k})->flat<double>().data();
      bool* dones = Output(ctx, 1, {k})->flat<bool>().data();
      pool.Step(std::move(slots), actions.tensor_data().data(), rewards, dones, std::move(finish));
    });
  }
};

class EnvObservationOp : public AsyncOpKernel {
 public:
  explicit EnvObservationOp(OpKernelConstruction* ctx) : AsyncOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("shape", &shape_));
  }

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    RunAsync(ctx, done, [&](Done finish) {
      EnvPool& pool = Lookup<EnvPool>(ctx, kPool);
      const TensorShape expected(pool.spec().observation_shape);
      if (dtype_ != ToTf(pool.spec().observation_dtype)) {
        ThrowInvalid("attr 'dtype' is ", tensorflow::DataTypeString(dtype_), ", expected ",
                     NameOf(pool.spec().observation_dtype));
      }
      if (!shape_.IsCompatibleWith(expected)) {
        ThrowInvalid("attr 'shape' is ", shape_.DebugString(), ", expected ", expected.DebugString());
      }
      auto slots = Values<int64_t>(ctx, "slots");
      TensorShape shape({static_cast<int64_t>(slots.size())});
      shape.AppendShape(expected);
      void* out = const_cast<char*>(Output(ctx, 0, shape)->tensor_data().data());
      pool.Observe(std::move(slots), out, std::move(finish));
    });
  }

 private:
  tensorflow::DataType dtype_;
  tensorflow::PartialTensorShape shape_;
};

REGISTER_KERNEL_BUILDER(Name("EnvPoolMake").Device(tensorflow::DEVICE_CPU), EnvPoolMakeOp);
REGISTER_KERNEL_BUILDER(Name("EnvPoolSpec").Device(tensorflow::DEVICE_CPU), EnvPoolSpecOp);
REGISTER_KERNEL_BUILDER(Name("EnvReset").Device(tensorflow::DEVICE_CPU), EnvResetOp);
REGISTER_KERNEL_BUILDER(Name("EnvStep").Device(tensorflow::DEVICE_CPU), EnvStepOp);
REGISTER_KERNEL_BUILDER(Name("EnvObservation").Device(tensorflow::DEVICE_CPU), EnvObservationOp);

}  // namespace
}  // namespace neuroevo::tf_ops
