// Messages about versions of CUDA, and the check for drivers that are too old for the runtime.
#include "gpu/versions.h"

#include "native/check.h"

using namespace neuroevo;

TEST(VersionsInWords) {
  CHECK_EQ(device::Versions(13000, 12040), "built with 13.0, the driver supports 12.4");
  CHECK_EQ(device::Versions(12090, 0), "built with 12.9, no driver");
}

TEST(ADriverRunsItsMajorVersionAndEarlierOnes) {
  CHECK_EQ(device::DriverProblem(13000, 0), "no NVIDIA driver is installed");
  CHECK_EQ(device::DriverProblem(13010, 12090),
           "the NVIDIA driver supports CUDA 12.9, expected 13.0 or later for a GPU backend built with 13.1: update the "
           "driver, or rebuild with the nvcc of CUDA 12");
  for (int driver : {12000, 12040, 12090, 13000, 14020}) CHECK_EQ(device::DriverProblem(12040, driver), "");
}
