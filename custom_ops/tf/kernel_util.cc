#include "tf/kernel_util.h"

namespace neuroevo::tf_ops {

namespace {

constexpr char kKindPayload[] = "neuroevo.kind";

absl::StatusCode StatusCodeOf(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::kInvalidArgument:
      return absl::StatusCode::kInvalidArgument;
    case Error::Kind::kOutOfRange:
      return absl::StatusCode::kInvalidArgument;  // TensorFlow interprets kOutOfRange as the end of a dataset
    case Error::Kind::kNotFound:
      return absl::StatusCode::kNotFound;
    case Error::Kind::kCancelled:
      return absl::StatusCode::kCancelled;
    case Error::Kind::kInternal:
    case Error::Kind::kEnvironment:
      return absl::StatusCode::kInternal;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::Status ToStatus(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    absl::Status status(StatusCodeOf(e.kind()), e.what());
    const std::string kind = std::to_string(static_cast<int>(e.kind()));
    status.SetPayload(kKindPayload, absl::Cord(absl::string_view(kind)));
    return status;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  } catch (...) {
    return absl::InternalError("an exception of unknown type");
  }
}

tensorflow::DataType ToTf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return tensorflow::DT_UINT8;
    case DType::kInt8:
      return tensorflow::DT_INT8;
    case DType::kInt32:
      return tensorflow::DT_INT32;
    case DType::kFloat32:
      return tensorflow::DT_FLOAT;
    case DType::kFloat64:
      return tensorflow::DT_DOUBLE;
  }
  return tensorflow::DT_INVALID;
}

const tensorflow::Tensor& Input(tensorflow::OpKernelContext* ctx, const char* name) {
  const tensorflow::Tensor* tensor;
  absl::Status status = ctx->input(name, &tensor);
  if (!status.ok()) throw Error(Error::Kind::kInternal, std::string(status.message()));
  return *tensor;
}

const tensorflow::Tensor& VectorInput(tensorflow::OpKernelContext* ctx, const char* name, int64_t size) {
  const tensorflow::Tensor& tensor = Input(ctx, name);
  if (tensor.dims() != 1 || (size >= 0 && tensor.dim_size(0) != size)) {
    ThrowInvalid("input '", name, "' has shape ", tensor.shape().DebugString(), ", expected [",
                 size < 0 ? std::string("K") : std::to_string(size), "]");
  }
  return tensor;
}

const tensorflow::Tensor& Checked(tensorflow::OpKernelContext* ctx, const char* name, tensorflow::DataType dtype,
                                  const tensorflow::TensorShape& shape) {
  const tensorflow::Tensor& tensor = Input(ctx, name);
  if (tensor.dtype() != dtype) {
    ThrowInvalid("input '", name, "' has dtype ", tensorflow::DataTypeString(tensor.dtype()), ", expected ",
                 tensorflow::DataTypeString(dtype));
  }
  if (tensor.shape() != shape) {
    ThrowInvalid("input '", name, "' has shape ", tensor.shape().DebugString(), ", expected ", shape.DebugString());
  }
  return tensor;
}

std::vector<std::string> Strings(tensorflow::OpKernelContext* ctx, const char* name) {
  std::vector<std::string> strings;
  for (const auto& value : Values<tensorflow::tstring>(ctx, name)) strings.emplace_back(value);
  return strings;
}

tensorflow::Tensor* Output(tensorflow::OpKernelContext* ctx, int index, const tensorflow::TensorShape& shape) {
  tensorflow::Tensor* out = nullptr;
  absl::Status status = ctx->allocate_output(index, shape, &out);
  if (!status.ok()) throw Error(Error::Kind::kInternal, std::string(status.message()));
  return out;
}

}  // namespace neuroevo::tf_ops
