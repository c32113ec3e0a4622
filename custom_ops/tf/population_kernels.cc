// Kernels of the population ops. All are on TensorFlow's CPU device: a population with the backend "cuda" copies its
// data to the GPU itself, on its own streams.
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
using tensorflow::Tensor;
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
    OP_REQUIRES_OK(ctx, ctx->GetAttr("rank", &rank_));
    tensorflow::DataType dtype;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype));
    dtype_ = dtype == tensorflow::DT_INT8 ? DType::kInt8 : DType::kFloat32;
  }

  void Compute(OpKernelContext* ctx) override {
    MakeResource<PopulationPtr>(ctx, [&] {
      std::vector<Network> networks;
      for (const std::string& text : Strings(ctx, "networks")) networks.push_back(Network::Parse(text));
      auto population = Population::Make(backend_, networks, rows_, ProcessPool(), dtype_, float_rows_, rank_);
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
      if (k == 0) return;  // most refills assign no rows, and then the width of thetas is arbitrary
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
      const auto spreads = Values<int64_t>(ctx, "spreads", k);
      Population& population = LookupPopulation(ctx);
      population.Perturb(dst, src, seeds, scales, spreads);
    });
  }
};

// Return the observations of k slots; throws unless they match the networks' input.
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
      population.ClearStates(states);
    });
  }
};

// Return the slots of a forward op with k rows; only the op with kSlots has this input.
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

}  // namespace
}  // namespace neuroevo::tf_ops
