// Implementation of gpu/device.h with the CUDA runtime.
#include <sys/prctl.h>

#include <ctime>

#include "core/error.h"
#include "gpu/device.h"
#include "gpu/runtime.h"
#include "gpu/versions.h"

namespace neuroevo {

void cuda::Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();                              // clears the error, so that the next call does not report it again
  const bool lasts = cudaFree(nullptr) == status;  // a kernel's error, which every later call of the process reports
  throw Error(Error::Kind::kInternal,
              Concat(what, ": ", cudaGetErrorString(status),
                     lasts ? "; this process can no longer use the GPU, start a new process" : ""));
}

namespace device {

namespace {

constexpr long kPauseNs = 20000;  // time between two queries whether the GPU is done

using cuda::Check;

// Clears the error of a call whose failure has no consequences, so that the next launch does not report it.
void Ignore(cudaError_t status) {
  if (status != cudaSuccess) cudaGetLastError();
}

// Kernel for checking whether the library was compiled for the GPU.
__global__ void Nothing() {}

cudaEvent_t CudaEvent(void* event) { return static_cast<cudaEvent_t>(event); }

cudaStream_t Cuda(Stream stream) { return static_cast<cudaStream_t>(stream); }

int Attribute(cudaDeviceAttr attribute) {
  int value = 0;
  Check(cudaDeviceGetAttribute(&value, attribute, Current()), "querying the GPU's properties");
  return value;
}

// Returns 0 if no driver is installed. For the runtime's version, use CUDART_VERSION: cudaRuntimeGetVersion of CUDA
// 11.8 requires a GPU.
int DriverVersion() {
  int version = 0;
  Check(cudaDriverGetVersion(&version), "querying the version of the NVIDIA driver");
  return version;
}

}  // namespace

std::string Versions() { return Versions(CUDART_VERSION, DriverVersion()); }

void CheckAvailable() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  const std::string problem = DriverProblem(CUDART_VERSION, DriverVersion());
  if (!problem.empty()) ThrowNotFound(problem);
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    ThrowNotFound("no NVIDIA GPU is visible to this process");
  }
  if (status != cudaSuccess) ThrowNotFound("CUDA cannot find a GPU: ", cudaGetErrorString(status));
  cudaFuncAttributes attributes;
  const cudaError_t found = cudaFuncGetAttributes(&attributes, Nothing);
  cudaGetLastError();
  if (found != cudaSuccess) {
    ThrowNotFound(Name(), ": ", cudaGetErrorString(found),
                  "; expected compute capability 7.5 or later, and a build for it: `make build CUDA_ARCHS=native`");
  }
}

std::string Name() {
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, Current()), "querying the GPU's properties");
  return Concat(properties.name, ", compute capability ", properties.major, ".", properties.minor);
}

int Multiprocessors() { return Attribute(cudaDevAttrMultiProcessorCount); }

int64_t FreeBytes() {
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "querying the GPU's free memory");
  return static_cast<int64_t>(free);
}

int64_t TotalBytes() {
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "querying the GPU's memory");
  return static_cast<int64_t>(total);
}

int Current() {
  int device = 0;
  Check(cudaGetDevice(&device), "querying the thread's current GPU");
  return device;
}

Using::Using(int device) : device_(device), before_(Current()) {
  if (device_ != before_) Check(cudaSetDevice(device_), "selecting a GPU");
}

Using::~Using() {
  if (device_ != before_) Ignore(cudaSetDevice(before_));
}

Stream MakeStream() {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return stream;
}

void FreeStream(Stream stream) { Ignore(cudaStreamDestroy(Cuda(stream))); }

void Synchronize(Stream stream) {
  // The runtime's own methods of waiting either keep a core busy or wake the thread 40 to 100 us late, occasionally 500
  // us (docs/measurements.md). The default timer slack alone is 50 us.
  static thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1000);
  static_cast<void>(precise);
  cudaError_t status = cudaStreamQuery(Cuda(stream));
  for (; status == cudaErrorNotReady; status = cudaStreamQuery(Cuda(stream))) {
    cudaGetLastError();  // clears "not ready", which is reported as an error
    const timespec pause = {0, kPauseNs};
    nanosleep(&pause, nullptr);
  }
  Check(status, "waiting for the GPU");
}

Event::Event() {
  cudaEvent_t event = nullptr;
  Check(cudaEventCreate(&event), "creating an event");
  event_ = event;
}

Event::~Event() { Ignore(cudaEventDestroy(CudaEvent(event_))); }

void Event::Record(Stream stream) { Check(cudaEventRecord(CudaEvent(event_), Cuda(stream)), "measuring time"); }

double Event::SecondsUntil(const Event& later) const {
  float milliseconds = 0;
  Check(cudaEventElapsedTime(&milliseconds, CudaEvent(event_), CudaEvent(later.event_)), "measuring time");
  return 1e-3 * milliseconds;
}

void* Allocate(Where where, int64_t bytes) {
  void* memory = nullptr;
  const bool on_device = where == Where::kDevice;
  const cudaError_t status = on_device ? cudaMalloc(&memory, bytes) : cudaMallocHost(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    if (!on_device) throw Error(Error::Kind::kInternal, Concat("cannot allocate ", bytes, " bytes of pinned memory"));
    ThrowInvalid("cannot allocate ", bytes, " bytes on the GPU: ", FreeBytes(), " of ", TotalBytes(), " are free");
  }
  Check(status, "allocating memory");
  return memory;
}

void Free(Where where, void* memory) noexcept {
  if (memory == nullptr) return;
  Ignore(where == Where::kDevice ? cudaFree(memory) : cudaFreeHost(memory));
}

void CopyIn(void* device_dst, const void* host_src, int64_t bytes, Stream stream) {
  Check(cudaMemcpyAsync(device_dst, host_src, bytes, cudaMemcpyHostToDevice, Cuda(stream)), "copying to the GPU");
}

void CopyOut(void* host_dst, const void* device_src, int64_t bytes, Stream stream) {
  Check(cudaMemcpyAsync(host_dst, device_src, bytes, cudaMemcpyDeviceToHost, Cuda(stream)), "copying from the GPU");
}

void CopyWithin(void* device_dst, const void* device_src, int64_t bytes, Stream stream) {
  Check(cudaMemcpyAsync(device_dst, device_src, bytes, cudaMemcpyDeviceToDevice, Cuda(stream)), "copying on the GPU");
}

void FillBytes(void* device_dst, int value, int64_t bytes, Stream stream) {
  Check(cudaMemsetAsync(device_dst, value, bytes, Cuda(stream)), "filling the GPU's memory");
}

}  // namespace device
}  // namespace neuroevo
