#pragma once

#include <string>
#include <tuple>

#include "tern/kernels/convolution.h"
#include "tern/kernels/cuda/graph_plan.h"

namespace tern::cuda {

enum class ConvolutionPass : uint8_t { forward, backward_data, backward_weights };

/// A convolution as cuDNN plans it. x, w and y (or their gradients) share the format; w is [O, C/groups, kh, kw].
struct ConvolutionProblem {
  ConvolutionPass pass;
  Shape x, w, y;
  kernels::ConvGeometry geometry;
  MemoryFormat format;
  DType dtype;             ///< of every array: cuDNN has no engine that leaves dw of bf16 in f32
  bool tf32 = false;       ///< f32 may be read so
  int64_t alignment = 16;  ///< of every array, bytes

  auto fields() const {
    return std::tie(pass, x, w, y, geometry.stride, geometry.padding, geometry.dilation, geometry.groups, format, dtype,
                    tf32, alignment);
  }
  friend bool operator==(const ConvolutionProblem& a, const ConvolutionProblem& b) { return a.fields() == b.fields(); }
};
/// All of it in a line: "conv2d f32 channels_last x [64, 20, 12, 12] w [50, 20, 5, 5] ...".
std::string to_string(const ConvolutionProblem& problem);

inline constexpr int64_t kConvolutionIds[] = {'x', 'w', 'y'};

/// The convolution for cuDNN; its tensors have the ids of `kConvolutionIds`.
OperationGraph convolution_graph(const ConvolutionProblem& problem, const PlanTarget& target);

}  // namespace tern::cuda
