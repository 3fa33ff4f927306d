#include "tern/kernels/convolution.h"

#include <array>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tern/core/cuda/runtime.h"
#include "tern/core/error.h"
#include "tern/kernels/cuda/cudnn_plan.h"
#include "tern/kernels/cuda/engine.h"
#include "tern/kernels/cuda/operands.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/libraries.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// One device's cuDNN handle and the plans made for the device. A handle is used by one thread at a time.
struct Dnn {
  struct Entry {
    ConvolutionProblem problem;
    GraphPlan plan;
  };
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
  std::vector<Entry> plans;
  std::optional<EngineFile> engines;
};

Dnn& dnn_of(Device device) {
  static auto& devices = *new std::array<Dnn, kMaxCudaDevices>;  // never destroyed, like the devices' own objects
  return devices[static_cast<size_t>(device.index)];
}

/// The arrays of a convolution, in the order of `kConvolutionIds`.
struct Arrays {
  const Tensor &x, &w, &y;

  Tensor workspace_of(int64_t bytes) const {
    return Tensor::empty({bytes}, {.dtype = DType::u8, .device = x.device()});
  }
  void run(const GraphPlan& plan, cudnnHandle_t handle) const {
    run(plan, handle, workspace_of(plan.workspace_bytes()));
  }
  void run(const GraphPlan& plan, cudnnHandle_t handle, const Tensor& workspace) const {
    const std::array<void*, 3> arrays{x.raw_data(), w.raw_data(), y.raw_data()};
    plan.run(handle, kConvolutionIds, arrays, workspace.raw_data());
  }
};

int driver_version() {
  int version = 0;
  check_cuda(cudaDriverGetVersion(&version), "conv2d");
  return version;
}

/// Returns the fastest of the first few engines and remembers it in a file. If runs must be deterministic, returns the
/// first engine that the heuristics propose. Skips engines that fail here.
/// Each process chooses for itself: ranks may round their own gradients differently, but they all receive the same sum
/// of them.
GraphPlan choose(Dnn& dnn, const ConvolutionProblem& problem, const Arrays& arrays, bool deterministic) {
  constexpr size_t kCandidates = 8;
  const Device device = arrays.x.device();
  const auto graph = convolution_graph(problem, {.handle = dnn.handle});
  const std::string key = to_string(problem);
  if (!deterministic) {
    if (!dnn.engines)
      dnn.engines.emplace(engine_file_path(device_backend(device).name(), cudnnGetVersion(), driver_version()));
    if (const Engine* engine = dnn.engines->find(key)) {
      auto plan = graph.plan(*engine);
      if (plan && !failure_of(device, [&](cudaStream_t) { arrays.run(*plan, dnn.handle); })) return std::move(*plan);
    }
  }
  const EngineRules rules{.tensor_cores = problem.dtype == DType::bf16 || problem.tf32,
                          .winograd = !problem.direct,
                          .deterministic = deterministic};
  auto plans = graph.plans(rules, kCandidates);
  if (deterministic)
    return std::move(
        plans[first_of(plans.size(), device, [&](size_t i, cudaStream_t) { arrays.run(plans[i], dnn.handle); })]);
  Tensor workspace;
  std::optional<size_t> owner;  // the plan that the workspace is for
  const auto issue = [&](size_t i, cudaStream_t stream) {
    if (std::exchange(owner, i) != i) {
      workspace = Tensor();
      workspace = arrays.workspace_of(plans[i].workspace_bytes());
    }
    check_cudnn(cudnnSetStream(dnn.handle, stream), "conv2d");
    arrays.run(plans[i], dnn.handle, workspace);
  };
  const size_t chosen = fastest_of(plans.size(), device, issue);
  check_cudnn(cudnnSetStream(dnn.handle, enter(device)), "conv2d");
  GraphPlan& fastest = plans[chosen];
  dnn.engines->add(key, fastest.engine());
  return std::move(fastest);
}

const GraphPlan& plan_of(Dnn& dnn, const ConvolutionProblem& problem, const Arrays& arrays, bool deterministic) {
  for (const auto& entry : dnn.plans)
    if (entry.problem == problem) return entry.plan;
  const Tensor spare = problem.adds ? Tensor::empty_like(arrays.x) : arrays.x;  // trials must not add to x
  dnn.plans.push_back({problem, choose(dnn, problem, {spare, arrays.w, arrays.y}, deterministic)});
  return dnn.plans.back().plan;
}

/// Runs one pass. x, w and y are the tensors, or gradients, that it reads and writes. All have the same format. `adds`:
/// backward_data adds to x.
void run(ConvolutionPass pass, const kernels::ConvGeometry& geometry, const Tensor& x, const Tensor& w, const Tensor& y,
         bool adds = false) {
  const auto rules = kernels::library_rules(x.device());
  const ConvolutionProblem problem{.pass = pass,
                                   .x = x.shape(),
                                   .w = w.shape(),
                                   .y = y.shape(),
                                   .geometry = geometry,
                                   .format = x.format(),
                                   .dtype = x.dtype(),
                                   .tf32 = x.dtype() == DType::f32 && rules.tf32,
                                   .direct = rules.direct_convolutions,
                                   .adds = adds,
                                   .alignment = alignment_of(x, alignment_of(w, alignment_of(y, 16)))};
  const cudaStream_t stream = enter(x.device());
  Dnn& dnn = dnn_of(x.device());
  const std::lock_guard lock(dnn.mutex);
  if (dnn.handle == nullptr) {
    check_cudnn(cudnnCreate(&dnn.handle), "conv2d");
    check_cudnn(cudnnSetStream(dnn.handle, stream), "conv2d");
  }
  const Arrays arrays{x, w, y};
  arrays.run(plan_of(dnn, problem, arrays, rules.deterministic), dnn.handle);
  if (waits_after_each()) check_cuda(cudaStreamSynchronize(stream), last_operation());
}

void check_dtype(const Tensor& x) {
  check(x.dtype() == DType::f32 || x.dtype() == DType::bf16, "conv2d: elements are ", x.dtype(),
        ", on CUDA expected f32 or bf16");
}

/// Whether weights have the dtype, the format and the channels of the activations x.
bool are_beside(const Tensor& x, const Tensor& w, int64_t groups) {
  return w.dtype() == x.dtype() && w.format() == x.format() && w.size(1) * groups == x.size(1);
}

/// Uninitialised weights with the dtype, the format and the channels of the activations x.
Tensor empty_beside(const Tensor& x, const Tensor& w, int64_t groups) {
  Shape shape = w.shape();
  if (groups == 1) shape[1] = x.size(1);
  return Tensor::empty(shape, {x.dtype(), x.device(), x.format()});
}

/// Copies weights to weights that may have another dtype, another format and other channels.
void copy_weights(const Tensor& from, Tensor& to) {
  if (from.shape() == to.shape())
    kernels::convert.on(Target::cuda)(from, to);
  else
    fit_channels("conv2d", from, to);
}

Tensor weights_beside(const Tensor& x, const Tensor& w, int64_t groups) {
  if (are_beside(x, w, groups)) return w;
  Tensor result = empty_beside(x, w, groups);
  copy_weights(w, result);
  return result;
}

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry& geometry, bool relu,
            Tensor& y) {
  check_dtype(x);
  if (y.numel() == 0) return;
  run(ConvolutionPass::forward, geometry, x, weights_beside(x, w, geometry.groups), y);
  add_bias("conv2d", bias, relu, y);
}

void conv2d_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry& geometry, Tensor& dx) {
  check_dtype(dy);
  if (dx.numel() == 0) return;
  run(ConvolutionPass::backward_data, geometry, dx, weights_beside(dx, w, geometry.groups), dy);
}

void conv2d_backward_data_add(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry& geometry, Tensor& dx) {
  check_dtype(dy);
  if (dx.numel() == 0) return;
  run(ConvolutionPass::backward_data, geometry, dx, weights_beside(dx, w, geometry.groups), dy, true);
}

void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry& geometry, Tensor& dw,
                             Tensor& db) {
  check_dtype(dy);
  if (x.numel() == 0) {
    for (const Tensor& gradient : {dw, db})
      if (gradient.defined()) device_backend(gradient.device()).fill_zero(gradient.raw_data(), gradient.bytes());
    return;
  }
  if (are_beside(x, dw, geometry.groups)) {
    run(ConvolutionPass::backward_weights, geometry, x, dw, dy);
  } else {
    const Tensor own = empty_beside(x, dw, geometry.groups);
    run(ConvolutionPass::backward_weights, geometry, x, own, dy);
    copy_weights(own, dw);
  }
  channel_sums("conv2d_backward_weights", dy, db);
}

}  // namespace

void provide_convolution() {
  kernels::conv2d.provide(Target::cuda, conv2d);
  kernels::conv2d_backward_data.provide(Target::cuda, conv2d_backward_data);
  kernels::conv2d_backward_data_add.provide(Target::cuda, conv2d_backward_data_add);
  kernels::conv2d_backward_weights.provide(Target::cuda, conv2d_backward_weights);
}

}  // namespace tern::cuda
