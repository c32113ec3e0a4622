// Formatting of CUDA versions in messages. Versions are CUDA's numbers: 12040 is 12.4.
#ifndef NEUROEVO_GPU_VERSIONS_H_
#define NEUROEVO_GPU_VERSIONS_H_

#include <string>

#include "core/error.h"

namespace neuroevo::device {

inline std::string Version(int version) { return Concat(version / 1000, ".", version % 1000 / 10); }

// Returns a text such as "built with 13.0, the driver supports 12.4". driver: 0 if no driver is installed.
inline std::string Versions(int runtime, int driver) {
  return Concat("built with ", Version(runtime), driver == 0 ? ", no driver" : ", the driver supports ",
                driver == 0 ? "" : Version(driver));
}

// Returns the reason why the driver cannot run code built with this runtime, or an empty string if it can. A driver
// runs code built with any CUDA of its major version or an earlier one.
inline std::string DriverProblem(int runtime, int driver) {
  if (driver == 0) return "no NVIDIA driver is installed";
  if (driver / 1000 >= runtime / 1000) return "";
  return Concat("the NVIDIA driver supports CUDA ", Version(driver), ", expected ", runtime / 1000,
                ".0 or later for a GPU backend built with ", Version(runtime),
                ": update the driver, or rebuild with the nvcc of CUDA ", driver / 1000);
}

}  // namespace neuroevo::device

#endif  // NEUROEVO_GPU_VERSIONS_H_
