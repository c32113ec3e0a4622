// CPU kernels of the population ops.
#include <algorithm>
#include <cstring>
#include <memory>

#include "population/population.h"
#include "tf/kernel_util.h"

namespace neuroevo::tf_ops {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::TensorShape;

using PopulationPtr = std::unique_ptr<Population>;

Population& LookupPopulation(OpKernelContext* ctx) { return *Lookup<PopulationPtr>(ctx, "a population"); }

int64_t MaxDimension(const Population& population) {
  int64_t dimension = 0;
  for (const Network& network : population.networks()) dimension = std::max(dimension, network.dimension());
  return dimension;
}

class PopulationMakeOp : public OpKernel {
 public:
  explicit PopulationMakeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("rows", &rows_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("backend", &backend_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("float_rows", &float_rows_));
    tensorflow::DataType dtype;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype));
    dtype_ = dtype == tensorflow::DT_INT8 ? DType::kInt8 : DType::kFloat32;
  }

  void Compute(OpKernelContext* ctx) override {
    MakeResource<PopulationPtr>(ctx, [&] {
      std::vector<Network> networks;
      for (const std::string& text : Strings(ctx, "networks")) networks.push_back(Network::Parse(text));
      return new Resource<PopulationPtr>(
          Population::Make(backend_, networks, rows_, ProcessPool(), dtype_, float_rows_));
    });
  }

 private:
  int64_t rows_, float_rows_;
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
      LookupPopulation(ctx).Init(rows, networks, seeds);
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
      const auto& thetas = Checked(ctx, "thetas", tensorflow::DT_FLOAT, {k, stride});
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
      LookupPopulation(ctx).Perturb(dst, src, seeds, scales);
    });
  }
};

class PopulationForwardOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    RunSync(ctx, [&] {
      Population& population = LookupPopulation(ctx);
      const Network& network = population.networks().front();
      const auto rows = Values<int64_t>(ctx, "rows");
      TensorShape shape({static_cast<int64_t>(rows.size())});
      for (int dim : network.input_shape()) shape.AddDim(dim);
      const auto& observations = Checked(ctx, "observations", ToTf(network.input_dtype()), shape);
      float* outputs = Output(ctx, 0, {shape.dim_size(0), network.output_size()})->flat<float>().data();
      population.Forward(rows, observations.tensor_data().data(), outputs);
    });
  }
};

REGISTER_KERNEL_BUILDER(Name("PopulationMake").Device(tensorflow::DEVICE_CPU), PopulationMakeOp);
REGISTER_KERNEL_BUILDER(Name("PopulationDimensions").Device(tensorflow::DEVICE_CPU), PopulationDimensionsOp);
REGISTER_KERNEL_BUILDER(Name("PopulationInit").Device(tensorflow::DEVICE_CPU), PopulationInitOp);
REGISTER_KERNEL_BUILDER(Name("PopulationAssign").Device(tensorflow::DEVICE_CPU), PopulationAssignOp);
REGISTER_KERNEL_BUILDER(Name("PopulationRead").Device(tensorflow::DEVICE_CPU), PopulationReadOp);
REGISTER_KERNEL_BUILDER(Name("PopulationPerturb").Device(tensorflow::DEVICE_CPU), PopulationPerturbOp);
REGISTER_KERNEL_BUILDER(Name("PopulationForward").Device(tensorflow::DEVICE_CPU), PopulationForwardOp);

}  // namespace
}  // namespace neuroevo::tf_ops
