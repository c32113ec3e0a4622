// Kernels of the population ops, for the CPU and for TensorFlow's GPU devices. The latter's rows are in memory of
// TensorFlow's allocator, and its forward pass runs on TensorFlow's stream; what is an index or a seed stays on the
// host.
#include <algorithm>
#include <cstring>
#include <memory>

#include "population/device_forward.h"
#include "population/population.h"
#include "tf/kernel_util.h"
#include "xla/stream_executor/stream.h"

namespace neuroevo::tf_ops {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

using PopulationPtr = std::unique_ptr<Population>;

Population& LookupPopulation(OpKernelContext* ctx) { return *Lookup<PopulationPtr>(ctx, "a population"); }

int64_t MaxDimension(const Population& population) {
  int64_t dimension = 0;
  for (const Network& network : population.networks()) dimension = std::max(dimension, network.dimension());
  return dimension;
}

// Rows are filled on streams of their own. On a GPU this waits until TensorFlow's stream has come to the end of what is
// queued there: forward passes whose ops have returned, which still read the rows, and whatever else still uses memory
// that TensorFlow's allocator already counts as free, as what comes next on its stream may have it.
void WaitForStream(OpKernelContext* ctx) {
  if (ctx->device()->device_type() != tensorflow::DEVICE_GPU) return;
  const absl::Status status = ctx->op_device_context()->stream()->BlockHostUntilDone();
  if (!status.ok()) throw Error(Error::Kind::kInternal, std::string(status.message()));
}

// Memory of the device that a kernel runs on.
class DeviceMemorySource : public MemorySource {
 public:
  explicit DeviceMemorySource(tensorflow::Allocator* allocator) : allocator_(allocator) {}
  // It may still be in use: see WaitForStream.
  void* Allocate(int64_t bytes) override {
    void* memory = allocator_->AllocateRaw(tensorflow::Allocator::kAllocatorAlignment, bytes);
    if (memory != nullptr) return memory;
    ThrowInvalid("TensorFlow's allocator ", allocator_->Name(), " has no ", bytes, " bytes for the rows");
  }
  void Free(void* memory) noexcept override { allocator_->DeallocateRaw(memory); }

 private:
  tensorflow::Allocator* allocator_;
};

class PopulationMakeOp : public OpKernel {
 public:
  explicit PopulationMakeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("rows", &rows_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("backend", &backend_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("float_rows", &float_rows_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("rank", &rank_));
    tensorflow::DataType dtype;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype));
    dtype_ = dtype == tensorflow::DT_INT8 ? DType::kInt8 : DType::kFloat32;
    if (ctx->device_type() == tensorflow::DEVICE_GPU) backend_ = "cuda";
  }

  void Compute(OpKernelContext* ctx) override {
    MakeResource<PopulationPtr>(ctx, [&] {
      std::vector<Network> networks;
      for (const std::string& text : Strings(ctx, "networks")) networks.push_back(Network::Parse(text));
      std::shared_ptr<MemorySource> memory;
      if (backend_ == "cuda" && ctx->device()->device_type() == tensorflow::DEVICE_GPU) {
        memory = std::make_shared<DeviceMemorySource>(ctx->device()->GetAllocator(tensorflow::AllocatorAttributes()));
      }
      auto population = Population::Make(backend_, networks, rows_, ProcessPool(), dtype_, float_rows_, memory, rank_);
      if (memory != nullptr) WaitForStream(ctx);
      return new Resource<PopulationPtr>(std::move(population));
    });
  }

 private:
  int64_t rows_, float_rows_;
  int32_t rank_;
  std::string backend_;
  DType dtype_;
};

class PopulationDimensionsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      std::vector<int64_t> dimensions;
      for (const Network& network : LookupPopulation(ctx).networks()) dimensions.push_back(network.dimension());
      SetVector<int64_t>(ctx, 0, dimensions);
    });
  }
};

class PopulationInitOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      const auto rows = Values<int64_t>(ctx, "rows");
      const int64_t k = static_cast<int64_t>(rows.size());
      const auto networks = Values<int32_t>(ctx, "networks", k);
      const auto seeds = Values<int64_t, uint64_t>(ctx, "seeds", k);
      Population& population = LookupPopulation(ctx);
      WaitForStream(ctx);
      population.Init(rows, networks, seeds);
    });
  }
};

class PopulationAssignOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      Population& population = LookupPopulation(ctx);
      const auto rows = Values<int64_t>(ctx, "rows");
      const int64_t k = static_cast<int64_t>(rows.size());
      const int64_t stride = MaxDimension(population);
      const auto networks = Values<int32_t>(ctx, "networks", k);
      if (k == 0) return;  // as most refills of a lane are, whose thetas may have any width then
      const auto& thetas = Checked(ctx, "thetas", tensorflow::DT_FLOAT, {k, stride});
      WaitForStream(ctx);
      population.Assign(rows, networks, thetas.flat<float>().data(), stride);
    });
  }
};

class PopulationReadOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      Population& population = LookupPopulation(ctx);
      const auto rows = Values<int64_t>(ctx, "rows");
      const int64_t stride = MaxDimension(population);
      auto thetas = Output(ctx, 0, {static_cast<int64_t>(rows.size()), stride})->flat<float>();
      std::memset(thetas.data(), 0, thetas.size() * sizeof(float));
      population.Read(rows, thetas.data(), stride);
    });
  }
};

class PopulationPerturbOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      const auto dst = Values<int64_t>(ctx, "dst");
      const int64_t k = static_cast<int64_t>(dst.size());
      const auto src = Values<int64_t>(ctx, "src", k);
      const auto seeds = Values<int64_t, uint64_t>(ctx, "seeds", k);
      const auto scales = Values<float>(ctx, "scales", k);
      const auto spreads = Values<int64_t>(ctx, "spreads", k);
      Population& population = LookupPopulation(ctx);
      WaitForStream(ctx);
      population.Perturb(dst, src, seeds, scales, spreads);
    });
  }
};

// The observations of k slots; throws unless they are what the networks take.
const Tensor& CheckedObservations(OpKernelContext* ctx, const Population& population, int64_t k) {
  const Network& network = population.networks().front();
  TensorShape shape({k});
  for (int dim : network.input_shape()) shape.AddDim(dim);
  return Checked(ctx, "observations", ToTf(network.input_dtype()), shape);
}

class PopulationSetReferenceOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      Population& population = LookupPopulation(ctx);
      const Tensor& batch = ctx->input(1);
      const int64_t count = batch.dims() > 0 ? batch.dim_size(0) : 0;
      population.SetReference(CheckedObservations(ctx, population, count).tensor_data().data(), count);
    });
  }
};

// Unlike what fills rows, this need not wait for TensorFlow's stream: nothing there reads rows that are not prepared.
class PopulationPrepareOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] { LookupPopulation(ctx).Prepare(Values<int64_t>(ctx, "rows")); });
  }
};

class PopulationClearStatesOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      const auto states = Values<int64_t>(ctx, "states");
      Population& population = LookupPopulation(ctx);
      WaitForStream(ctx);
      population.ClearStates(states);
    });
  }
};

// The slots of a forward op of k rows, which are an input of one of the two.
template <bool kSlots>
std::vector<int64_t> SlotsOf(OpKernelContext* ctx, int64_t k) {
  if constexpr (kSlots) return Values<int64_t>(ctx, "slots", k);
  return {};
}

template <bool kSlots>
class PopulationForwardOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      Population& population = LookupPopulation(ctx);
      const auto rows = Values<int64_t>(ctx, "rows");
      const int64_t k = static_cast<int64_t>(rows.size());
      const Tensor& observations = CheckedObservations(ctx, population, k);
      float* outputs = Output(ctx, 0, {k, population.networks().front().output_size()})->flat<float>().data();
      population.Forward(rows, observations.tensor_data().data(), outputs, SlotsOf<kSlots>(ctx, k));
    });
  }
};

// Queues the evaluation on TensorFlow's stream and returns.
template <bool kSlots>
class PopulationForwardGpuOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      Population& population = LookupPopulation(ctx);
      DeviceForward* device = dynamic_cast<DeviceForward*>(&population);
      if (device == nullptr) ThrowInvalid("input 'handle' is of a population on the CPU, expected one on the GPU");
      const auto rows = Values<int64_t>(ctx, "rows");
      const int64_t k = static_cast<int64_t>(rows.size());
      const Tensor& observations = CheckedObservations(ctx, population, k);
      float* outputs = Output(ctx, 0, {k, population.networks().front().output_size()})->flat<float>().data();
      if (k == 0) return;
      Tensor workspace;  // freed after this op, and used by others once what is queued here is over
      const absl::Status status =
          ctx->allocate_temp(tensorflow::DT_INT8, TensorShape({device->WorkspaceBytes(k)}), &workspace);
      if (!status.ok()) throw Error(Error::Kind::kInternal, std::string(status.message()));
      void* stream = ctx->op_device_context()->stream()->platform_specific_handle().stream;
      device->ForwardOnDevice(rows, observations.tensor_data().data(), outputs, SlotsOf<kSlots>(ctx, k),
                              reinterpret_cast<char*>(workspace.flat<int8_t>().data()), stream);
    });
  }
};

REGISTER_KERNEL_BUILDER(Name("PopulationMake").Device(tensorflow::DEVICE_CPU), PopulationMakeOp);
REGISTER_KERNEL_BUILDER(Name("PopulationDimensions").Device(tensorflow::DEVICE_CPU), PopulationDimensionsOp);
REGISTER_KERNEL_BUILDER(Name("PopulationInit").Device(tensorflow::DEVICE_CPU), PopulationInitOp);
REGISTER_KERNEL_BUILDER(Name("PopulationAssign").Device(tensorflow::DEVICE_CPU), PopulationAssignOp);
REGISTER_KERNEL_BUILDER(Name("PopulationRead").Device(tensorflow::DEVICE_CPU), PopulationReadOp);
REGISTER_KERNEL_BUILDER(Name("PopulationPerturb").Device(tensorflow::DEVICE_CPU), PopulationPerturbOp);
REGISTER_KERNEL_BUILDER(Name("PopulationSetReference").Device(tensorflow::DEVICE_CPU), PopulationSetReferenceOp);
REGISTER_KERNEL_BUILDER(Name("PopulationPrepare").Device(tensorflow::DEVICE_CPU), PopulationPrepareOp);
REGISTER_KERNEL_BUILDER(Name("PopulationForward").Device(tensorflow::DEVICE_CPU), PopulationForwardOp<false>);
REGISTER_KERNEL_BUILDER(Name("PopulationForwardSlots").Device(tensorflow::DEVICE_CPU), PopulationForwardOp<true>);
REGISTER_KERNEL_BUILDER(Name("PopulationClearStates").Device(tensorflow::DEVICE_CPU), PopulationClearStatesOp);

#define ON_GPU(op) Name(op).Device(tensorflow::DEVICE_GPU).HostMemory("handle")
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationMake").HostMemory("networks"), PopulationMakeOp);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationDimensions").HostMemory("dimensions"), PopulationDimensionsOp);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationInit").HostMemory("rows").HostMemory("networks").HostMemory("seeds"),
                        PopulationInitOp);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationAssign").HostMemory("rows").HostMemory("networks").HostMemory("thetas"),
                        PopulationAssignOp);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationRead").HostMemory("rows").HostMemory("thetas"), PopulationReadOp);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationPerturb")
                            .HostMemory("dst")
                            .HostMemory("src")
                            .HostMemory("seeds")
                            .HostMemory("scales")
                            .HostMemory("spreads"),
                        PopulationPerturbOp);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationSetReference").HostMemory("observations"), PopulationSetReferenceOp);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationPrepare").HostMemory("rows"), PopulationPrepareOp);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationForward").HostMemory("rows"), PopulationForwardGpuOp<false>);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationForwardSlots").HostMemory("rows").HostMemory("slots"),
                        PopulationForwardGpuOp<true>);
REGISTER_KERNEL_BUILDER(ON_GPU("PopulationClearStates").HostMemory("states"), PopulationClearStatesOp);
#undef ON_GPU

}  // namespace
}  // namespace neuroevo::tf_ops
