#include "tern/core/cuda/runtime.h"

#include "tern/core/error.h"

namespace tern::cuda {
namespace {

__global__ void probe() {}

}  // namespace

void check_architecture(int device) {
  check_cuda(cudaSetDevice(device), "device");
  cudaFuncAttributes attributes;
  const cudaError_t status = cudaFuncGetAttributes(&attributes, probe);
  if (status != cudaErrorNoKernelImageForDevice && status != cudaErrorInvalidDeviceFunction &&
      status != cudaErrorUnsupportedPtxVersion)
    return check_cuda(status, "device");
  cudaGetLastError();
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, device), "device");
  fail_input({"device cuda:", device, ": ", static_cast<const char*>(properties.name), " has compute capability ",
              properties.major, ".", properties.minor, ", this build holds code for " TERN_CUDA_ARCHITECTURES,
              "; configure it with -DCMAKE_CUDA_ARCHITECTURES=", properties.major, properties.minor});
}

}  // namespace tern::cuda
