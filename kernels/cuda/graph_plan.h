#pragma once

#include <optional>
#include <span>

#include "tern/kernels/cuda/descriptor.h"

namespace tern::cuda {

/// What runs a graph: a device through its handle, or one that is not here, by its properties as cuDNN writes them down
/// (then plans can be made, and not run).
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;
};

/// Which engines a plan may use.
struct EngineRules {
  bool tensor_cores = true;  ///< without them float products are exact to f32
};

/// An execution plan of cuDNN's graph API: the first engine that its heuristics propose, the rules admit and that
/// builds. Engines that give other bits from run to run, or sum in less than f32, are never taken. Immutable; used by
/// one thread at a time.
class GraphPlan {
 public:
  /// `operations` of one graph. An error names `operation` where no engine is left.
  GraphPlan(const char* operation, std::initializer_list<const Descriptor*> operations, const PlanTarget& target,
            const EngineRules& rules);

  int64_t workspace_bytes() const { return plan_->integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE); }
  /// Runs in the handle's stream: `arrays[i]` is the tensor whose unique id is `ids[i]`.
  void run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> arrays, void* workspace) const;

 private:
  const char* operation_;
  std::optional<Descriptor> plan_;
};

}  // namespace tern::cuda
