#include "tf/kernel_util.h"

namespace neuroevo::tf_ops {

absl::Status ToStatus(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    switch (e.kind()) {
      case Error::Kind::kInvalidArgument:
        return absl::InvalidArgumentError(e.what());
      case Error::Kind::kOutOfRange:
        // Not OutOfRange: TensorFlow takes that for the end of a data set.
        return absl::InvalidArgumentError(e.what());
      case Error::Kind::kNotFound:
        return absl::NotFoundError(e.what());
      case Error::Kind::kCancelled:
        return absl::CancelledError(e.what());
      case Error::Kind::kInternal:
        return absl::InternalError(e.what());
    }
    return absl::InternalError(e.what());
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

const tensorflow::Tensor& Checked(tensorflow::OpKernelContext* ctx, const char* name, tensorflow::DataType dtype,
                                  const tensorflow::TensorShape& shape) {
  const tensorflow::Tensor* tensor;
  absl::Status status = ctx->input(name, &tensor);
  if (!status.ok()) throw Error(Error::Kind::kInternal, std::string(status.message()));
  if (tensor->dtype() != dtype) {
    ThrowInvalid("input '", name, "' has dtype ", tensorflow::DataTypeString(tensor->dtype()), ", expected ",
                 tensorflow::DataTypeString(dtype));
  }
  if (tensor->shape() != shape) {
    ThrowInvalid("input '", name, "' has shape ", tensor->shape().DebugString(), ", expected ", shape.DebugString());
  }
  return *tensor;
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
