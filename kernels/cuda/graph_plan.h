#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tern/kernels/cuda/descriptor.h"
#include "tern/kernels/cuda/engine.h"

namespace tern::cuda {

/// What runs a graph: a device through its handle, or one that is not here, by its properties as cuDNN writes them down
/// (then plans can be made, and not run).
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;
};

/// Which engines a plan may use. Those that sum in less than f32 or lose digits to Winograd's large tiles are never
/// taken.
struct EngineRules {
  bool tensor_cores = true;                    ///< without them float products are exact to f32
  bool deterministic = false;                  ///< none that gives other bits from run to run
  int64_t workspace_bytes = int64_t{1} << 30;  ///< at most, where any engine does with so few
};

/// An execution plan of cuDNN's graph API. Immutable; used by one thread at a time.
class GraphPlan {
 public:
  int64_t workspace_bytes() const { return plan_.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE); }
  Engine engine() const;
  bool has_note(cudnnBackendNumericalNote_t note) const;
  /// Runs in the handle's stream: `arrays[i]` is the tensor whose unique id is `ids[i]`.
  void run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> arrays, void* workspace) const;

 private:
  friend class OperationGraph;
  GraphPlan(const char* operation, Descriptor config, Descriptor plan)
      : operation_(operation), config_(std::move(config)), plan_(std::move(plan)) {}

  const char* operation_;
  Descriptor config_, plan_;
};

/// A graph of operations on a target, from which plans are made.
class OperationGraph {
 public:
  OperationGraph(const char* operation, std::vector<Descriptor> operations, const PlanTarget& target);

  /// The first `most` engines that cuDNN's heuristics propose, the rules admit and that build, in the heuristics'
  /// order. An error names the operation where there is none.
  std::vector<GraphPlan> plans(const EngineRules& rules, size_t most) const;
  /// The plan of one engine; nothing where this cuDNN does not build it.
  std::optional<GraphPlan> plan(const Engine& engine) const;

 private:
  std::vector<Descriptor> proposals(cudnnBackendHeurMode_t mode) const;
  std::optional<GraphPlan> build(Descriptor config) const;

  const char* operation_;
  PlanTarget target_;
  std::vector<Descriptor> operations_;
  Descriptor graph_;
};

}  // namespace tern::cuda
