// Versions of CUDA in messages. They are CUDA's numbers: 12040 is 12.4.
#ifndef NEUROEVO_GPU_VERSIONS_H_
#define NEUROEVO_GPU_VERSIONS_H_

#include <string>

#include "core/error.h"

namespace neuroevo::device {

inline std::string Version(int version) { return Concat(version / 1000, ".", version % 1000 / 10); }

// "built with 13.0, the driver supports 12.4"; a driver of 0: not installed.
inline std::string Versions(int runtime, int driver) {
  return Concat("built with ", Version(runtime), driver == 0 ? ", no driver" : ", the driver supports ",
                driver == 0 ? "" : Version(driver));
}

// Why the driver cannot run what was built with this runtime; empty where it can. A driver runs what any CUDA of its
// major version or an earlier one has built.
inline std::string DriverProblem(int runtime, int driver) {
  if (driver == 0) return "there is no NVIDIA driver here";
  if (driver / 1000 >= runtime / 1000) return "";
  return Concat("the NVIDIA driver supports CUDA ", Version(driver), ", expected ", runtime / 1000,
                ".0 or later for a GPU backend built with ", Version(runtime),
                ": update the driver, or rebuild with the nvcc of CUDA ", driver / 1000);
}

}  // namespace neuroevo::device

#endif  // NEUROEVO_GPU_VERSIONS_H_
