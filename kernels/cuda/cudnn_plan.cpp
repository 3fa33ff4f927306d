#include "tern/kernels/cuda/cudnn_plan.h"

#include <algorithm>
#include <array>

#include "tern/core/error.h"

namespace tern::cuda {

void check_cudnn(cudnnStatus_t status, const char* operation) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  std::array<char, 512> detail{};
  cudnnGetLastErrorString(detail.data(), detail.size());
  fail({operation, ": cuDNN: ", cudnnGetErrorString(status), detail[0] != '\0' ? ": " : "", detail.data()});
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type, const char* operation) : operation_(operation) {
  check_cudnn(cudnnBackendCreateDescriptor(type, &descriptor_), operation);
}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                            const void* values) {
  check_cudnn(cudnnBackendSetAttribute(descriptor_, name, type, count, values), operation_);
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> others) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& other : others) handles.push_back(other.descriptor_);
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(handles.size()), handles.data());
}

Descriptor& Descriptor::finish() {
  check_cudnn(cudnnBackendFinalize(descriptor_), operation_);
  return *this;
}

bool Descriptor::try_finish() { return cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS; }

int64_t Descriptor::integer(cudnnBackendAttributeName_t name) const {
  return values<int64_t>(name, CUDNN_TYPE_INT64, 1).at(0);
}

std::vector<Descriptor> Descriptor::children(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t element,
                                             int64_t most) const {
  int64_t count = most;
  if (most == 0)
    check_cudnn(cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                operation_);
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < count; ++i) handles.push_back(found.emplace_back(element, operation_).descriptor_);
  if (count > 0)
    check_cudnn(
        cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, handles.data()),
        operation_);
  found.erase(found.begin() + count, found.end());
  return found;
}

namespace {

bool notes_include(const Descriptor& config, std::initializer_list<cudnnBackendNumericalNote_t> wanted) {
  const auto engines = config.children(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const auto notes = engines.at(0).values<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  return std::ranges::find_first_of(notes, wanted) != notes.end();
}

bool admitted(const Descriptor& config, const EngineRules& rules) {
  if (notes_include(config, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
                             CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}))
    return false;
  if (!rules.winograd && notes_include(config, {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4}))
    return false;
  if (rules.deterministic && notes_include(config, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC})) return false;
  return rules.tensor_cores ||
         !notes_include(config, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS});
}

struct PassNames {
  const char* operation;
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};
const PassNames& names_of(ConvolutionPass pass) {
  static constexpr PassNames kNames[] = {
      {"conv2d", CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {"conv2d_backward_data", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {"conv2d_backward_weights", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
  };
  return kNames[static_cast<size_t>(pass)];
}

cudnnDataType_t data_type(DType dtype) { return dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT; }

/// A tensor of a graph. If it is virtual, it is in f32 and only the operations of the graph see it.
Descriptor tensor(const char* operation, int64_t id, const Shape& shape, const ConvolutionProblem& problem,
                  bool is_virtual = false) {
  const std::array<int64_t, 4> extents{shape[0], shape[1], shape[2], shape[3]};
  const int64_t c = shape[1], h = shape[2], w = shape[3];
  const std::array<int64_t, 4> strides = problem.format == MemoryFormat::channels_last
                                             ? std::array<int64_t, 4>{h * w * c, 1, w * c, c}
                                             : std::array<int64_t, 4>{c * h * w, h * w, w, 1};
  Descriptor descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, operation);
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(is_virtual ? DType::f32 : problem.dtype))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::span<const int64_t>(extents))
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::span<const int64_t>(strides))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, problem.alignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual)
      .finish();
  return descriptor;
}

/// to = f(from), or f(from, second), for each element.
Descriptor pointwise(const char* operation, cudnnPointwiseMode_t f, const Descriptor& from, const Descriptor* second,
                     const Descriptor& to) {
  Descriptor mode(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, operation);
  mode.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, f)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .finish();
  Descriptor step(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, operation);
  step.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from);
  if (second != nullptr) step.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *second);
  step.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to).finish();
  return step;
}

/// Adds the operations from the sums of the products to y.
void add_epilogue(const char* operation, const ConvolutionProblem& problem, const Descriptor& sum, const Descriptor& y,
                  std::vector<Descriptor>& operations) {
  const Descriptor bias = tensor(operation, kConvolutionIds[3], {1, problem.w[0], 1, 1}, problem);
  if (problem.epilogue == Epilogue::bias)
    return operations.push_back(pointwise(operation, CUDNN_POINTWISE_ADD, sum, &bias, y));
  const Descriptor before_relu = tensor(operation, 'r', problem.y, problem, true);
  operations.push_back(pointwise(operation, CUDNN_POINTWISE_ADD, sum, &bias, before_relu));
  operations.push_back(pointwise(operation, CUDNN_POINTWISE_RELU_FWD, before_relu, nullptr, y));
}

Descriptor convolution(const char* operation, const kernels::ConvGeometry& geometry) {
  const auto pair = [](const kernels::Extent2& extent) { return std::array<int64_t, 2>{extent.h, extent.w}; };
  const auto padding = pair(geometry.padding), stride = pair(geometry.stride), dilation = pair(geometry.dilation);
  Descriptor descriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, operation);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, std::span<const int64_t>(padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, std::span<const int64_t>(padding))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, std::span<const int64_t>(stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, std::span<const int64_t>(dilation))
      .finish();
  return descriptor;
}

}  // namespace

Engine GraphPlan::engine() const {
  const auto engines = config_.children(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  Engine engine{.index = engines.at(0).integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), .knobs = {}};
  // If asked for the number of knobs, cuDNN answers 0, so ask for the maximum number.
  for (const auto& knob : config_.children(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                           CUDNN_KNOB_TYPE_COUNTS)) {
    const auto type =
        knob.values<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1).at(0);
    engine.knobs.emplace_back(static_cast<int64_t>(type), knob.integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return engine;
}

bool GraphPlan::has_note(cudnnBackendNumericalNote_t note) const { return notes_include(config_, {note}); }

void GraphPlan::run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> arrays,
                    void* workspace) const {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, operation_);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, arrays)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
      .finish();
  check_cudnn(cudnnBackendExecute(handle, plan_.get(), pack.get()), operation_);
}

OperationGraph::OperationGraph(const char* operation, std::vector<Descriptor> operations, const PlanTarget& target)
    : operation_(operation),
      target_(target),
      operations_(std::move(operations)),
      graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, operation) {
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  if (target.handle != nullptr) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph_.finish();
}

std::vector<GraphPlan> OperationGraph::plans(const EngineRules& rules, size_t most) const {
  auto found = plans_if_any(rules, most);
  check(!found.empty(), operation_, ": cuDNN has no engine for it that is admitted and builds");
  return found;
}

std::vector<GraphPlan> OperationGraph::plans_if_any(const EngineRules& rules, size_t most) const {
  std::vector<GraphPlan> found, large;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : proposals(mode)) {
      if (found.size() == most) return found;
      if (!admitted(config, rules)) continue;
      auto plan = build(std::move(config));
      if (plan) (plan->workspace_bytes() <= rules.workspace_bytes ? found : large).push_back(std::move(*plan));
    }
    if (!found.empty()) return found;
  }
  if (!large.empty()) large.erase(large.begin() + 1, large.end());
  return large;
}

std::optional<GraphPlan> OperationGraph::plan(const Engine& wanted) const try {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, operation_);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_)
      .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, wanted.index);
  if (target_.properties != nullptr) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target_.properties);
  if (!engine.try_finish()) return {};
  std::vector<Descriptor> knobs;
  for (const auto& [type, value] : wanted.knobs) {
    Descriptor& knob = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, operation_);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(type))
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, value);
    if (!knob.try_finish()) return {};
  }
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, operation_);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty()) config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs);
  if (!config.try_finish()) return {};
  return build(std::move(config));
} catch (const Error&) {  // cuDNN refuses some choices of knobs as soon as they are set
  return {};
}

std::vector<Descriptor> OperationGraph::proposals(cudnnBackendHeurMode_t mode) const {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, operation_);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target_.properties != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target_.properties);
  if (!heuristics.try_finish()) return {};
  return heuristics.children(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

std::optional<GraphPlan> OperationGraph::build(Descriptor config) const {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, operation_);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (target_.handle != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target_.handle);
  if (target_.properties != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target_.properties);
  if (!plan.try_finish()) return {};
  return GraphPlan(operation_, std::move(config), std::move(plan));
}

std::string to_string(const ConvolutionProblem& p) {
  std::string text = join({names_of(p.pass).operation, " ", p.dtype, p.tf32 ? " as tf32 " : " ",
                           p.direct ? "direct " : "", p.adds ? "added " : "",
                           p.epilogue == Epilogue::none   ? ""
                           : p.epilogue == Epilogue::bias ? "bias "
                                                          : "bias relu ",
                           p.format});
  text += join({" x ", p.x, " w ", p.w, " y ", p.y, " groups ", p.geometry.groups, " alignment ", p.alignment});
  const auto add = [&](const char* name, kernels::Extent2 extent) { text += join({name, extent.h, "x", extent.w}); };
  add(" stride ", p.geometry.stride);
  add(" padding ", p.geometry.padding);
  add(" dilation ", p.geometry.dilation);
  return text;
}

OperationGraph convolution_graph(const ConvolutionProblem& problem, const PlanTarget& target) {
  const PassNames& names = names_of(problem.pass);
  const Descriptor x = tensor(names.operation, kConvolutionIds[0], problem.x, problem),
                   w = tensor(names.operation, kConvolutionIds[1], problem.w, problem),
                   y = tensor(names.operation, kConvolutionIds[2], problem.y, problem),
                   geometry = convolution(names.operation, problem.geometry);
  std::optional<Descriptor> sum;  // before the epilogue
  if (problem.epilogue != Epilogue::none) sum = tensor(names.operation, 's', problem.y, problem, true);
  std::vector<Descriptor> operations;
  operations.emplace_back(names.type, names.operation)
      .set(names.convolution, geometry)
      .set(names.x, x)
      .set(names.w, w)
      .set(names.y, sum ? *sum : y)
      .set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f)
      .set(names.beta, CUDNN_TYPE_FLOAT, problem.adds ? 1.0f : 0.0f)
      .finish();
  if (sum) add_epilogue(names.operation, problem, *sum, y, operations);
  return {names.operation, std::move(operations), target};
}

}  // namespace tern::cuda
