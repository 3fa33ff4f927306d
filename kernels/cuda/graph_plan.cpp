#include "tern/kernels/cuda/graph_plan.h"

#include <algorithm>

#include "tern/core/error.h"

namespace tern::cuda {
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
  if (rules.deterministic && notes_include(config, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC})) return false;
  return rules.tensor_cores ||
         !notes_include(config, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS});
}

}  // namespace

Engine GraphPlan::engine() const {
  const auto engines = config_.children(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  Engine engine{.index = engines.at(0).integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), .knobs = {}};
  // Asked how many knobs are set, cuDNN says none.
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
  int64_t proposed = 0;
  std::vector<GraphPlan> found, large;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : proposals(mode)) {
      ++proposed;
      if (found.size() == most) return found;
      if (!admitted(config, rules)) continue;
      auto plan = build(std::move(config));
      if (plan) (plan->workspace_bytes() <= rules.workspace_bytes ? found : large).push_back(std::move(*plan));
    }
    if (!found.empty()) return found;
  }
  check(!large.empty(), operation_, ": cuDNN has no engine for it: ", proposed,
        " proposed, none that is admitted builds");
  large.erase(large.begin() + 1, large.end());
  return large;
}

std::optional<GraphPlan> OperationGraph::plan(const Engine& wanted) const {
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

}  // namespace tern::cuda
