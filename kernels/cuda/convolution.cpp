#include "tern/kernels/convolution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
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
    bool deterministic;
    std::optional<GraphPlan> plan;  ///< none if the epilogue cannot be part of it
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

/// The arrays of a convolution, in the order of `kConvolutionIds`. Without an epilogue, `bias` is undefined.
struct Arrays {
  const Tensor &x, &w, &y, &bias;

  Tensor workspace_of(int64_t bytes) const {
    return Tensor::empty({bytes}, {.dtype = DType::u8, .device = x.device()});
  }
  void run(const GraphPlan& plan, cudnnHandle_t handle) const {
    run(plan, handle, workspace_of(plan.workspace_bytes()));
  }
  void run(const GraphPlan& plan, cudnnHandle_t handle, const Tensor& workspace) const {
    const bool fused = bias.defined();
    const std::array<void*, 4> arrays{x.raw_data(), w.raw_data(), y.raw_data(), fused ? bias.raw_data() : nullptr};
    const size_t count = fused ? 4 : 3;
    plan.run(handle, std::span(kConvolutionIds).first(count), std::span(arrays).first(count), workspace.raw_data());
  }
};

int driver_version() {
  int version = 0;
  check_cuda(cudaDriverGetVersion(&version), "conv2d");
  return version;
}

/// Whether NaN and infinity pass the epilogue of a plan that runs. cuDNN does not say so of each engine, so this tries
/// it. Overwrites y.
bool passes_nonfinite(const GraphPlan& plan, cudnnHandle_t handle, const Arrays& arrays) {
  const auto first_image = [&](float value) {
    const Tensor bias = Tensor::full(arrays.bias.shape(), value, {arrays.bias.dtype()}).to(arrays.bias.device());
    Arrays{arrays.x, arrays.w, arrays.y, bias}.run(plan, handle);
    return arrays.y.slice(0, 1).to_vector<float>();
  };
  using Limits = std::numeric_limits<float>;
  return std::ranges::all_of(first_image(Limits::quiet_NaN()), [](float y) { return std::isnan(y); }) &&
         std::ranges::none_of(first_image(Limits::infinity()), [](float y) { return std::isfinite(y); });
}

/// Returns the fastest of the first few engines and remembers it in a file. If runs must be deterministic, returns the
/// first engine that the heuristics propose. Skips engines that fail here. If there is an epilogue, returns nothing
/// unless an engine runs and NaN and infinity pass all that run: a slow engine that they pass must not replace a fast
/// one that has no epilogue.
/// Each process chooses for itself: ranks may round their own gradients differently, but they all receive the same sum
/// of them.
std::optional<GraphPlan> choose(Dnn& dnn, const ConvolutionProblem& problem, const Arrays& arrays, bool deterministic) {
  constexpr size_t kCandidates = 8;
  const Device device = arrays.x.device();
  const bool fused = problem.epilogue != Epilogue::none;
  std::optional<OperationGraph> made;
  try {
    made.emplace(convolution_graph(problem, {.handle = dnn.handle}));
  } catch (const Error&) {
    if (!fused) throw;
    return {};
  }
  const OperationGraph& graph = *made;
  const std::string key = to_string(problem);
  const auto fails = [&](const GraphPlan& plan) {
    return failure_of(device, [&](cudaStream_t) { arrays.run(plan, dnn.handle); }) != nullptr;
  };
  const auto passes = [&](const GraphPlan& plan) { return !fused || passes_nonfinite(plan, dnn.handle, arrays); };
  if (!deterministic) {
    if (!dnn.engines)
      dnn.engines.emplace(engine_file_path(device_backend(device).name(), cudnnGetVersion(), driver_version()));
    if (const Engine* engine = dnn.engines->find(key)) {
      auto plan = graph.plan(*engine);
      if (plan && !fails(*plan) && passes(*plan)) return plan;
    }
  }
  const EngineRules rules{.tensor_cores = problem.dtype == DType::bf16 || problem.tf32,
                          .winograd = !problem.direct,
                          .deterministic = deterministic};
  auto plans = fused ? graph.plans_if_any(rules, kCandidates) : graph.plans(rules, kCandidates);
  if (fused) {
    std::erase_if(plans, fails);
    if (plans.empty() || !std::ranges::all_of(plans, passes)) return {};
  }
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
  const cudaStream_t stream = enter(device);
  const size_t chosen = fastest_of(plans.size(), device, issue, [&] { cudnnSetStream(dnn.handle, stream); });
  GraphPlan& fastest = plans[chosen];
  dnn.engines->add(key, fastest.engine());
  return std::move(fastest);
}

const std::optional<GraphPlan>& plan_of(Dnn& dnn, const ConvolutionProblem& problem, const Arrays& arrays,
                                        bool deterministic) {
  for (const auto& entry : dnn.plans)
    if (entry.problem == problem && entry.deterministic == deterministic) return entry.plan;
  const Tensor spare = problem.adds ? Tensor::empty_like(arrays.x) : arrays.x;  // trials must not add to x
  dnn.plans.push_back(
      {problem, deterministic, choose(dnn, problem, {spare, arrays.w, arrays.y, arrays.bias}, deterministic)});
  return dnn.plans.back().plan;
}

/// What a pass does beside the convolution: backward_data adds to x, or forward has an epilogue with this bias.
struct Beside {
  bool adds = false;
  Epilogue epilogue = Epilogue::none;
  Tensor bias = {};
};

/// Runs one pass. x, w and y are the tensors, or gradients, that it reads and writes. All have the same format. Returns
/// false, and computes nothing, if cuDNN cannot do the epilogue.
bool run(ConvolutionPass pass, const kernels::ConvGeometry& geometry, const Tensor& x, const Tensor& w, const Tensor& y,
         const Beside& beside = {}) {
  const auto rules = kernels::library_rules(x.device());
  uint32_t alignment = alignment_of(x, alignment_of(w, alignment_of(y, 16)));
  if (beside.bias.defined()) alignment = alignment_of(beside.bias, alignment);
  const ConvolutionProblem problem{.pass = pass,
                                   .x = x.shape(),
                                   .w = w.shape(),
                                   .y = y.shape(),
                                   .geometry = geometry,
                                   .format = x.format(),
                                   .dtype = x.dtype(),
                                   .tf32 = x.dtype() == DType::f32 && rules.tf32,
                                   .direct = rules.direct_convolutions,
                                   .adds = beside.adds,
                                   .epilogue = beside.epilogue,
                                   .alignment = alignment};
  const cudaStream_t stream = enter(x.device());
  Dnn& dnn = dnn_of(x.device());
  const std::lock_guard lock(dnn.mutex);
  if (dnn.handle == nullptr) {
    check_cudnn(cudnnCreate(&dnn.handle), "conv2d");
    check_cudnn(cudnnSetStream(dnn.handle, stream), "conv2d");
  }
  const Arrays arrays{x, w, y, beside.bias};
  const auto& plan = plan_of(dnn, problem, arrays, rules.deterministic);
  if (!plan) return false;
  arrays.run(*plan, dnn.handle);
  if (waits_after_each()) check_cuda(cudaStreamSynchronize(stream), last_operation());
  return true;
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
  const Tensor weights = weights_beside(x, w, geometry.groups);
  // In strict f32, cuDNN 9.19 proposes a counterpart of each engine, with the same knobs and workspace. In tf32 and
  // bf16 it lacks some of the fastest, or compiles them in seconds. It also wants a bias of y's dtype.
  const bool fuses = bias.defined() && x.dtype() == DType::f32 && !kernels::library_rules(x.device()).tf32;
  const Epilogue epilogue = relu ? Epilogue::bias_relu : Epilogue::bias;
  if (fuses && run(ConvolutionPass::forward, geometry, x, weights, y, {.epilogue = epilogue, .bias = bias})) return;
  run(ConvolutionPass::forward, geometry, x, weights, y);
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
  run(ConvolutionPass::backward_data, geometry, dx, weights_beside(dx, w, geometry.groups), dy, {.adds = true});
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
