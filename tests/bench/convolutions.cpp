#include <fmt/format.h>

#include "tern/kernels/convolution.h"
#include "tests/bench/case.h"

namespace tern::bench {
namespace {

using kernels::ConvGeometry;

struct ConvolutionShape {
  Shape x, w;
  ConvGeometry geometry;
};

/// Appends the three passes of a layer. The rates count the operations of the plain definition, even if the algorithm
/// needs fewer.
void add_layer(std::vector<Case>& cases, const ConvolutionShape& layer, int threads) {
  const Shape x_shape = layer.x, w_shape = layer.w;
  const ConvGeometry geometry = layer.geometry;
  const Shape y_shape = kernels::conv2d_output_shape(x_shape, w_shape, geometry);
  const Work work{2.0 * static_cast<double>(y_shape.numel() * w_shape.numel_from(1)), "GFLOP/s"};
  const auto name = [&](const char* pass) {
    return fmt::format("convolution/{}/{}x{}k{}s{}@{}/b{}/t{}", pass, w_shape[1], w_shape[0], w_shape[2],
                       geometry.stride.h, x_shape[2], x_shape[0], threads);
  };
  const auto image = [](const Shape& shape) { return Tensor::full(shape, 1, {.format = MemoryFormat::channels_last}); };
  cases.push_back({name("forward"), threads,
                   [=]() -> std::function<void()> {
                     return [=, x = image(x_shape), w = Tensor::full(w_shape, 1), bias = Tensor::zeros({w_shape[0]}),
                             y = image(y_shape)]() mutable { kernels::conv2d(x, w, bias, geometry, true, y); };
                   },
                   work});
  cases.push_back({name("backward_data"), threads,
                   [=]() -> std::function<void()> {
                     return [=, dy = image(y_shape), w = Tensor::full(w_shape, 1), dx = image(x_shape)]() mutable {
                       kernels::conv2d_backward_data(dy, w, geometry, dx);
                     };
                   },
                   work});
  cases.push_back({name("backward_weights"), threads,
                   [=]() -> std::function<void()> {
                     return [=, dy = image(y_shape), x = image(x_shape), dw = Tensor::full(w_shape, 1),
                             db = Tensor::zeros({w_shape[0]})]() mutable {
                       kernels::conv2d_backward_weights(dy, x, geometry, dw, db);
                     };
                   },
                   work});
}

}  // namespace

void add_convolutions(std::vector<Case>& cases) {
  const ConvGeometry same3{.padding = 1}, same5{.padding = 2}, half3{.stride = 2, .padding = 1}, half1{.stride = 2};
  const std::vector<ConvolutionShape> layers{
      {{64, 1, 28, 28}, {20, 1, 5, 5}, same5},    {{64, 20, 14, 14}, {50, 20, 5, 5}, same5},
      {{64, 64, 12, 12}, {64, 64, 5, 5}, same5},  {{64, 3, 32, 32}, {64, 3, 3, 3}, same3},
      {{64, 64, 32, 32}, {64, 64, 3, 3}, same3},  {{64, 128, 16, 16}, {128, 128, 3, 3}, same3},
      {{64, 256, 8, 8}, {256, 256, 3, 3}, same3}, {{64, 512, 4, 4}, {512, 512, 3, 3}, same3},
      {{64, 64, 32, 32}, {128, 64, 3, 3}, half3}, {{64, 128, 16, 16}, {256, 128, 3, 3}, half3},
      {{64, 256, 8, 8}, {512, 256, 3, 3}, half3}, {{64, 64, 32, 32}, {128, 64, 1, 1}, half1},
  };
  for (const int threads : kThreads) {
    for (const ConvolutionShape& layer : layers) add_layer(cases, layer, threads);
  }
}

}  // namespace tern::bench
