#include "tern/kernels/cuda/graph_plan.h"

#include <algorithm>

#include "tern/core/error.h"

namespace tern::cuda {
namespace {

bool admitted(const Descriptor& config, const EngineRules& rules) {
  const auto engines = config.children(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const auto notes = engines.at(0).values<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  return std::ranges::none_of(notes, [&](cudnnBackendNumericalNote_t note) {
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC || note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)
      return true;
    return !rules.tensor_cores &&
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  });
}

std::vector<Descriptor> proposals(const char* operation, const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                  const PlanTarget& target) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, operation);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.properties != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  if (!heuristics.try_finish()) return {};
  return heuristics.children(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

}  // namespace

GraphPlan::GraphPlan(const char* operation, std::initializer_list<const Descriptor*> operations,
                     const PlanTarget& target, const EngineRules& rules)
    : operation_(operation) {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, operation);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  if (target.handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph.finish();
  int64_t proposed = 0;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : proposals(operation, graph, mode, target)) {
      ++proposed;
      if (!admitted(config, rules)) continue;
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, operation);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      if (target.handle != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
      if (target.properties != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
      if (!plan.try_finish()) continue;
      plan_.emplace(std::move(plan));
      return;
    }
  }
  fail({operation, ": cuDNN has no engine for it: ", proposed, " proposed, none that is admitted builds"});
}

void GraphPlan::run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> arrays,
                    void* workspace) const {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, operation_);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, arrays)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
      .finish();
  check_cudnn(cudnnBackendExecute(handle, plan_->get(), pack.get()), operation_);
}

}  // namespace tern::cuda
