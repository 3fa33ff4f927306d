#include "tern/kernels/cuda/convolution.h"

#include <array>
#include <mutex>
#include <vector>

#include "tern/core/cuda/runtime.h"
#include "tern/core/error.h"
#include "tern/kernels/cuda/alignment.h"
#include "tern/kernels/cuda/bias.h"
#include "tern/kernels/cuda/convolution_plan.h"
#include "tern/kernels/cuda/layout.h"
#include "tern/kernels/cuda/reduction.h"

namespace tern::cuda {
namespace {

/// One device's cuDNN, and the plans made for it. A handle serves one thread at a time.
struct Dnn {
  struct Entry {
    ConvolutionProblem problem;
    GraphPlan plan;
  };
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
  std::vector<Entry> plans;
};

Dnn& dnn_of(Device device) {
  static auto& devices = *new std::array<Dnn, kMaxCudaDevices>;  // never destroyed, as the devices' own objects
  return devices[static_cast<size_t>(device.index)];
}

const GraphPlan& plan_of(Dnn& dnn, const ConvolutionProblem& problem) {
  for (const auto& entry : dnn.plans)
    if (entry.problem == problem) return entry.plan;
  dnn.plans.push_back({problem, plan_convolution(problem, {.handle = dnn.handle})});
  return dnn.plans.back().plan;
}

/// Runs one pass; x, w and y are what it reads and writes, all of one format.
void run(ConvolutionPass pass, const kernels::ConvGeometry& geometry, const Tensor& x, const Tensor& w,
         const Tensor& y) {
  const ConvolutionProblem problem{.pass = pass,
                                   .x = x.shape(),
                                   .w = w.shape(),
                                   .y = y.shape(),
                                   .geometry = geometry,
                                   .format = x.format(),
                                   .dtype = x.dtype(),
                                   .alignment = alignment_of(x, alignment_of(w, alignment_of(y, 16)))};
  const cudaStream_t stream = enter(x.device());
  Dnn& dnn = dnn_of(x.device());
  const std::lock_guard lock(dnn.mutex);
  if (dnn.handle == nullptr) {
    check_cudnn(cudnnCreate(&dnn.handle), "conv2d");
    check_cudnn(cudnnSetStream(dnn.handle, stream), "conv2d");
  }
  const GraphPlan& plan = plan_of(dnn, problem);
  const Tensor workspace = Tensor::empty({plan.workspace_bytes()}, {.dtype = DType::u8, .device = x.device()});
  const std::array<void*, 3> arrays{x.raw_data(), w.raw_data(), y.raw_data()};
  plan.run(dnn.handle, kConvolutionIds, arrays, workspace.raw_data());
  if (waits_after_each()) check_cuda(cudaStreamSynchronize(stream), last_operation());
}

void check_dtype(const Tensor& x) {
  check(x.dtype() == DType::f32 || x.dtype() == DType::bf16, "conv2d: elements are ", x.dtype(),
        ", on CUDA expected f32 or bf16");
}

/// The weights in the activations' dtype and format.
Tensor weights_beside(const Tensor& x, const Tensor& w) {
  if (w.dtype() == x.dtype() && w.format() == x.format()) return w;
  Tensor result = Tensor::empty(w.shape(), {x.dtype(), x.device(), x.format()});
  convert(w, result);
  return result;
}

}  // namespace

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry& geometry, bool relu,
            Tensor& y) {
  check_dtype(x);
  run(ConvolutionPass::forward, geometry, x, weights_beside(x, w), y);
  add_bias("conv2d", bias, relu, y);
}

void conv2d_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry& geometry, Tensor& dx) {
  check_dtype(dy);
  run(ConvolutionPass::backward_data, geometry, dx, weights_beside(dx, w), dy);
}

void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry& geometry, Tensor& dw,
                             Tensor& db) {
  check_dtype(dy);
  if (dw.format() == x.format() && dw.dtype() == x.dtype()) {
    run(ConvolutionPass::backward_weights, geometry, x, dw, dy);
  } else {
    const Tensor own = Tensor::empty(dw.shape(), {x.dtype(), dw.device(), x.format()});
    run(ConvolutionPass::backward_weights, geometry, x, own, dy);
    convert(own, dw);
  }
  channel_sums("conv2d_backward_weights", dy, db);
}

}  // namespace tern::cuda
