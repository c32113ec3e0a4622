// Helpers for kernels: errors as statuses, resources, tensors as vectors, and asynchronous core calls.
#ifndef NEUROEVO_TF_KERNEL_UTIL_H_
#define NEUROEVO_TF_KERNEL_UTIL_H_

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "core/wait.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace neuroevo::tf_ops {

// Convert an exception to a status. The kind of an Error is stored as a payload, which
// neuroevo/rollout/tensorflow/ops.py reads: the key must match, and the value is the kind's number.
absl::Status ToStatus(const std::exception_ptr& error);
tensorflow::DataType ToTf(DType dtype);

// Resource that owns a core object; freed when Python drops the last handle.
template <class T>
class Resource : public tensorflow::ResourceBase {
 public:
  template <class... Args>
  explicit Resource(Args&&... args) : object(std::forward<Args>(args)...) {}
  std::string DebugString() const override { return "neuroevo resource"; }

  T object;
};

// Return the object behind a handle. what, name: names of the object and of the op's input, for messages.
template <class T>
T& Lookup(tensorflow::OpKernelContext* ctx, const char* what, int index = 0, const char* name = "handle") {
  const tensorflow::TensorShape& shape = ctx->input(index).shape();
  if (shape.dims() != 0) ThrowInvalid("input '", name, "' has shape ", shape.DebugString(), ", expected []");
  tensorflow::core::RefCountPtr<Resource<T>> resource;
  absl::Status status = tensorflow::LookupResource(ctx, tensorflow::HandleFromInput(ctx, index), &resource);
  if (!status.ok()) ThrowInvalid("input '", name, "' is not a handle of ", what, ": ", std::string(status.message()));
  // The input tensor holds a reference while the kernel runs, even after ComputeAsync returns.
  return resource->object;
}

// Create the object and set output 0 to its handle.
template <class T, class Make>
void MakeResource(tensorflow::OpKernelContext* ctx, Make make) {
  try {
    Resource<T>* resource = make();
    tensorflow::Tensor handle(tensorflow::DT_RESOURCE, tensorflow::TensorShape({}));
    handle.scalar<tensorflow::ResourceHandle>()() =
        tensorflow::ResourceHandle::MakeRefCountingHandle(resource, ctx->device()->name());
    ctx->set_output(0, handle);
  } catch (...) {
    ctx->SetStatus(ToStatus(std::current_exception()));
  }
}

const tensorflow::Tensor& Input(tensorflow::OpKernelContext* ctx, const char* name);

// Return the input tensor; throws unless its shape is [size], or [any] for size < 0.
const tensorflow::Tensor& VectorInput(tensorflow::OpKernelContext* ctx, const char* name, int64_t size = -1);

// The same, as a vector of its values.
template <class T, class Out = T>
std::vector<Out> Values(tensorflow::OpKernelContext* ctx, const char* name, int64_t size = -1) {
  auto flat = VectorInput(ctx, name, size).flat<T>();
  return std::vector<Out>(flat.data(), flat.data() + flat.size());
}

// The same for strings, of shape [any].
std::vector<std::string> Strings(tensorflow::OpKernelContext* ctx, const char* name);

template <class T>
T Scalar(tensorflow::OpKernelContext* ctx, const char* name) {
  const tensorflow::Tensor& tensor = Input(ctx, name);
  if (tensor.dims() != 0) {
    ThrowInvalid("input '", name, "' has shape ", tensor.shape().DebugString(), ", expected []");
  }
  return tensor.scalar<T>()();
}

// Return the input tensor; throws unless it has this dtype and shape.
const tensorflow::Tensor& Checked(tensorflow::OpKernelContext* ctx, const char* name, tensorflow::DataType dtype,
                                  const tensorflow::TensorShape& shape);

// Allocate output `index`; throws if memory runs out.
tensorflow::Tensor* Output(tensorflow::OpKernelContext* ctx, int index, const tensorflow::TensorShape& shape);

// Set output `index` to a copy of the values, as a vector of T.
template <class T, class In>
void SetVector(tensorflow::OpKernelContext* ctx, int index, const std::vector<In>& values) {
  tensorflow::Tensor* out = Output(ctx, index, {static_cast<int64_t>(values.size())});
  auto flat = out->flat<T>();
  for (size_t i = 0; i < values.size(); ++i) flat(i) = static_cast<T>(values[i]);
}

template <class T>
void SetScalar(tensorflow::OpKernelContext* ctx, int index, T value) {
  Output(ctx, index, {})->template scalar<T>()() = value;
}

// Run start(finish): a core call that either throws or later calls finish once. No TensorFlow thread blocks.
template <class Start>
void RunAsync(tensorflow::OpKernelContext* ctx, tensorflow::AsyncOpKernel::DoneCallback done, Start start) {
  Done finish = [ctx, done](std::exception_ptr error) {
    if (error) ctx->SetStatus(ToStatus(error));
    done();
  };
  try {
    start(std::move(finish));
  } catch (...) {
    ctx->SetStatus(ToStatus(std::current_exception()));
    done();
  }
}

// Run body and translate an exception to the kernel's status.
template <class Body>
void RunSync(tensorflow::OpKernelContext* ctx, Body body) {
  try {
    body();
  } catch (...) {
    ctx->SetStatus(ToStatus(std::current_exception()));
  }
}

}  // namespace neuroevo::tf_ops

#endif  // NEUROEVO_TF_KERNEL_UTIL_H_
