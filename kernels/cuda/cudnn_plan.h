#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tern/kernels/convolution.h"
#include "tern/kernels/cuda/engine.h"

namespace tern::cuda {

/// Throws an Error "operation: cuDNN: message" unless `status` is success.
void check_cudnn(cudnnStatus_t status, const char* operation);

/// A descriptor of cuDNN's backend API. Create it, set its attributes, then finish it. Owns the handle.
class Descriptor {
 public:
  Descriptor(cudnnBackendDescriptorType_t type, const char* operation);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), operation_(other.operation_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(operation_, other.operation_);
    return *this;
  }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<const T> values) {
    return set(name, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> others);
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) { return set(name, std::span(&other, 1)); }
  /// Finishes the descriptor. If cuDNN refuses, `finish` throws an error that names the operation, and `try_finish`
  /// returns false.
  Descriptor& finish();
  bool try_finish();

  int64_t integer(cudnnBackendAttributeName_t name) const;
  /// The descriptors in attribute `name`, of type `element`. If `most` is 0, asks cuDNN for their number.
  std::vector<Descriptor> children(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t element,
                                   int64_t most = 0) const;
  /// The values of an attribute that has at most `most` values.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most) const {
    std::vector<T> found(static_cast<size_t>(most));
    int64_t count = 0;
    check_cudnn(cudnnBackendGetAttribute(descriptor_, name, type, most, &count, found.data()), operation_);
    found.resize(static_cast<size_t>(count));
    return found;
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void* values);

  cudnnBackendDescriptor_t descriptor_ = nullptr;
  const char* operation_;
};

/// The device for a graph: a device of this machine, by its handle, or another device, by its properties in cuDNN's
/// serialized form. In the second case plans can be made but not run.
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;
};

/// Rules for the engines that a plan may use. Engines that sum in less than f32, or lose precision through large
/// Winograd tiles, are never used.
struct EngineRules {
  bool tensor_cores = true;                    ///< if false, no engine may use tensor cores or convert f32 inputs down
  bool winograd = true;                        ///< engines with Winograd's small tiles
  bool deterministic = false;                  ///< no engine that gives different bits from run to run
  int64_t workspace_bytes = int64_t{1} << 30;  ///< maximum, if any admitted engine needs no more
};

/// An execution plan of cuDNN's graph API. Immutable. Used by one thread at a time.
class GraphPlan {
 public:
  int64_t workspace_bytes() const { return plan_.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE); }
  Engine engine() const;
  bool has_note(cudnnBackendNumericalNote_t note) const;
  /// Runs in the handle's stream. `arrays[i]` is the data of the tensor with the unique id `ids[i]`.
  void run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> arrays, void* workspace) const;

 private:
  friend class OperationGraph;
  GraphPlan(const char* operation, Descriptor config, Descriptor plan)
      : operation_(operation), config_(std::move(config)), plan_(std::move(plan)) {}

  const char* operation_;
  Descriptor config_, plan_;
};

/// A graph of operations on a target. Makes plans.
class OperationGraph {
 public:
  OperationGraph(const char* operation, std::vector<Descriptor> operations, const PlanTarget& target);

  /// Returns the plans of up to `most` engines, in the order in which cuDNN's heuristics propose them. Skips engines
  /// that the rules do not admit or that do not build. Throws an error that names the operation if there is none.
  std::vector<GraphPlan> plans(const EngineRules& rules, size_t most) const;
  /// The same, but empty if there is none.
  std::vector<GraphPlan> plans_if_any(const EngineRules& rules, size_t most) const;
  /// The plan of one engine; nothing if cuDNN cannot build it.
  std::optional<GraphPlan> plan(const Engine& engine) const;

 private:
  std::vector<Descriptor> proposals(cudnnBackendHeurMode_t mode) const;
  std::optional<GraphPlan> build(Descriptor config) const;

  const char* operation_;
  PlanTarget target_;
  std::vector<Descriptor> operations_;
  Descriptor graph_;
};

enum class ConvolutionPass : uint8_t { forward, backward_data, backward_weights };

/// What the forward pass does before it writes a result.
enum class Epilogue : uint8_t { none, bias, bias_relu };

/// A convolution as cuDNN plans it. x, w and y (or their gradients) have the same format. w is [O, C/groups, kh, kw].
struct ConvolutionProblem {
  ConvolutionPass pass;
  Shape x, w, y;
  kernels::ConvGeometry geometry;
  MemoryFormat format;
  DType dtype;          ///< of every array: beside bf16, cuDNN proposes no engine for dw in f32
  bool tf32 = false;    ///< f32 may be read as tf32
  bool direct = false;  ///< without Winograd's algorithm
  bool adds = false;    ///< adds to what the written array holds
  Epilogue epilogue = Epilogue::none;
  int64_t alignment = 16;  ///< of every array, in bytes

  auto fields() const {
    return std::tie(pass, x, w, y, geometry.stride, geometry.padding, geometry.dilation, geometry.groups, format, dtype,
                    tf32, direct, adds, epilogue, alignment);
  }
  friend bool operator==(const ConvolutionProblem& a, const ConvolutionProblem& b) { return a.fields() == b.fields(); }
};
/// All fields in one line: "conv2d f32 channels_last x [64, 20, 12, 12] w [50, 20, 5, 5] ...".
std::string to_string(const ConvolutionProblem& problem);

inline constexpr int64_t kConvolutionIds[] = {'x', 'w', 'y', 'b'};

/// The convolution as a cuDNN graph. Its tensors have the ids of `kConvolutionIds`; the last one is the bias, if any.
OperationGraph convolution_graph(const ConvolutionProblem& problem, const PlanTarget& target);

}  // namespace tern::cuda
