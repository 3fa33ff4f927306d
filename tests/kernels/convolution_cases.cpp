#include <limits>
#include "tern/kernels/convolution.h"

#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

struct ConvCase {
  const char* name;
  Shape x, w;
  kernels::ConvGeometry geometry = {};
  bool bias = true, relu = false;
};
const ConvCase kConvolutionCases[] = {
    {"1x1", {2, 16, 5, 7}, {8, 16, 1, 1}},
    {"1x1 strided", {2, 16, 7, 5}, {24, 16, 1, 1}, {.stride = 2}},
    {"3x3 same", {2, 16, 9, 7}, {32, 16, 3, 3}, {.padding = 1}},
    {"3x3 same, relu, no bias", {2, 16, 8, 8}, {16, 16, 3, 3}, {.padding = 1}, false, true},
    {"3x3 odd channels", {1, 3, 11, 9}, {5, 3, 3, 3}, {.padding = 1}},
    {"3x3 strided", {2, 8, 9, 9}, {16, 8, 3, 3}, {.stride = 2, .padding = 1}},
    {"3x3 wide", {2, 64, 8, 8}, {64, 64, 3, 3}, {.padding = 1}, false},
    {"5x5 valid, one channel", {3, 1, 28, 28}, {20, 1, 5, 5}},
    {"5x5 same", {2, 6, 12, 12}, {10, 6, 5, 5}, {.padding = 2}, true, true},
    {"5x3 uneven", {2, 4, 9, 8}, {6, 4, 5, 3}, {.stride = {2, 1}, .padding = {2, 0}}},
    {"dilated", {2, 4, 9, 9}, {8, 4, 3, 3}, {.padding = 2, .dilation = 2}},
    {"dilated unevenly", {1, 3, 10, 9}, {4, 3, 2, 3}, {.stride = 2, .dilation = {3, 2}}},
    {"groups", {2, 12, 7, 7}, {18, 4, 3, 3}, {.padding = 1, .groups = 3}},
    {"groups of 8", {2, 16, 6, 6}, {32, 8, 3, 3}, {.padding = 1, .groups = 2}},
    {"depthwise", {2, 9, 7, 7}, {9, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 9}},
    {"11x11 stride 4", {1, 3, 35, 35}, {16, 3, 11, 11}, {.stride = 4, .padding = 2}},
    {"kernel as large as the input", {4, 5, 4, 4}, {7, 5, 4, 4}},
    {"one element", {1, 1, 1, 1}, {1, 1, 1, 1}},
    {"no images", {0, 16, 5, 7}, {8, 16, 3, 3}, {.padding = 1}, true, true},
    {"no images, groups, strided", {0, 6, 9, 9}, {4, 3, 5, 5}, {.stride = 2, .groups = 2}, false},
    // oneDNN 2.6 has wrong bf16 results or gradients for these.
    {"dilated over its padding", {2, 32, 7, 7}, {64, 32, 5, 5}, {.padding = 4, .dilation = 2}},
    {"narrower than the stride", {2, 8, 13, 1}, {16, 8, 3, 3}, {.stride = 3, .padding = 1}},
    {"1x1, odd outputs", {1, 64, 30, 30}, {21, 64, 1, 1}},
    {"1x1 strided, few channels", {2, 8, 8, 22}, {16, 8, 1, 1}, {.stride = 2}},
    {"dilated, wide, 20 channels", {1, 20, 33, 33}, {24, 20, 3, 3}, {.padding = 2, .dilation = 2}},
    {"dilated depthwise, wide", {1, 32, 33, 33}, {32, 1, 3, 3}, {.padding = 2, .dilation = 2, .groups = 32}},
    {"rows that no window reaches", {1, 2, 8, 8}, {2, 2, 3, 3}, {.stride = 4}},
};

}  // namespace

void add_convolution_cases(ParityTable& table) {
  using namespace kernels;
  table.push_back({&conv2d, "NaN passes the relu", [](Run& run) {
                     const Tensor x = run.given({1, 1, 1, 2}, {std::numeric_limits<float>::quiet_NaN(), 1});
                     const Tensor w = run.parameter({17, 1, 1, 1}), bias = run.parameter({17});
                     run(conv2d, x, w, bias, {}, true, run.output({1, 17, 1, 2}));
                   }});
  table.push_back({&conv2d_backward_weights, "dw as the GPU takes w", [](Run& run) {
                     const Tensor dy = run.input({2, 16, 9, 7}), x = run.input({2, 8, 9, 7});
                     const bool as_x = run.device().type == DeviceType::cuda;
                     Tensor& dw = as_x ? run.output({16, 8, 3, 3}) : run.parameter_output({16, 8, 3, 3});
                     run(conv2d_backward_weights, dy, x, {.padding = 1}, dw, run.parameter_output({16}));
                   }});
  for (const ConvCase& c : kConvolutionCases) {
    const Shape y = conv2d_output_shape(c.x, c.w, c.geometry);
    table.push_back({&conv2d, c.name, [=](Run& run) {
                       const Tensor x = run.input(c.x), w = run.parameter(c.w);
                       const Tensor bias = c.bias ? run.parameter({c.w[0]}) : Tensor();
                       run(conv2d, x, w, bias, c.geometry, c.relu, run.output(y));
                     }});
    table.push_back({&conv2d_backward_data, c.name, [=](Run& run) {
                       const Tensor dy = run.input(y), w = run.parameter(c.w);
                       run(conv2d_backward_data, dy, w, c.geometry, run.output(c.x));
                     }});
    table.push_back({&conv2d_backward_data_add, c.name, [=](Run& run) {
                       const Tensor dy = run.input(y), w = run.parameter(c.w);
                       run(conv2d_backward_data_add, dy, w, c.geometry, run.changed(run.input(c.x)));
                     }});
    table.push_back({&conv2d_backward_weights, c.name, [=](Run& run) {
                       const Tensor dy = run.input(y), x = run.input(c.x);
                       Tensor none;
                       Tensor& db = c.bias ? run.parameter_output({c.w[0]}) : none;
                       run(conv2d_backward_weights, dy, x, c.geometry, run.parameter_output(c.w), db);
                     }});
  }
}

}  // namespace tern::test
