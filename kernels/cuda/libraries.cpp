#include "tern/kernels/libraries.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

namespace tern::kernels {
namespace {

std::string text(size_t major, size_t minor, size_t patch) {
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> cuda_libraries() {
  int cuda = 0;
  cudaRuntimeGetVersion(&cuda);
  const size_t cublas = cublasLtGetVersion(), cudnn = cudnnGetVersion();
  return {{"cuda", std::to_string(cuda / 1000) + '.' + std::to_string(cuda % 1000 / 10)},
          {"cublaslt", text(cublas / 10000, cublas / 100 % 100, cublas % 100)},
          {"cudnn", text(cudnn / 10000, cudnn / 100 % 100, cudnn % 100)}};
}

}  // namespace tern::kernels
