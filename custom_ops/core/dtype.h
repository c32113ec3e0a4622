// Element types of observations, actions, network inputs and weights.
#ifndef NEUROEVO_CORE_DTYPE_H_
#define NEUROEVO_CORE_DTYPE_H_

#include <cstddef>

namespace neuroevo {

enum class DType { kUint8, kInt8, kInt32, kFloat32, kFloat64 };

inline size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kInt8:
      return 1;
    case DType::kFloat64:
      return 8;
    default:
      return 4;
  }
}

inline const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return "uint8";
    case DType::kInt8:
      return "int8";
    case DType::kInt32:
      return "int32";
    case DType::kFloat32:
      return "float32";
    default:
      return "float64";
  }
}

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_DTYPE_H_
