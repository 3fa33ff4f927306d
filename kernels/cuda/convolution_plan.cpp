#include "tern/kernels/cuda/convolution_plan.h"

#include <array>

#include "tern/core/error.h"

namespace tern::cuda {
namespace {

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

Descriptor tensor(const char* operation, int64_t id, const Shape& shape, const ConvolutionProblem& problem) {
  const std::array<int64_t, 4> extents{shape[0], shape[1], shape[2], shape[3]};
  const int64_t c = shape[1], h = shape[2], w = shape[3];
  const std::array<int64_t, 4> strides = problem.format == MemoryFormat::channels_last
                                             ? std::array<int64_t, 4>{h * w * c, 1, w * c, c}
                                             : std::array<int64_t, 4>{c * h * w, h * w, w, 1};
  Descriptor descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, operation);
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(problem.dtype))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::span<const int64_t>(extents))
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::span<const int64_t>(strides))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, problem.alignment)
      .finish();
  return descriptor;
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

std::string to_string(const ConvolutionProblem& p) {
  std::string text = join({names_of(p.pass).operation, " ", p.dtype, p.tf32 ? " as tf32 " : " ", p.format});
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
  std::vector<Descriptor> operations;
  operations.emplace_back(names.type, names.operation)
      .set(names.convolution, geometry)
      .set(names.x, x)
      .set(names.w, w)
      .set(names.y, y)
      .set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f)
      .set(names.beta, CUDNN_TYPE_FLOAT, 0.0f)
      .finish();
  return {names.operation, std::move(operations), target};
}

}  // namespace tern::cuda
