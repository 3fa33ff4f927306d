#include <fmt/format.h>

#include <limits>

#include "tern/kernels/pooling.h"

#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

struct PoolCase {
  const char* name;
  Shape x;
  kernels::PoolGeometry geometry = {};
};
const PoolCase kPoolingCases[] = {
    {"2x2", {2, 8, 8, 8}},
    {"2x2, 21 channels", {2, 21, 8, 8}},
    {"2x2 odd", {3, 5, 7, 9}},
    {"2x2 odd, 21 channels", {2, 21, 7, 9}},
    {"2x2 padded, ceil, 10 channels", {2, 10, 6, 5}, {.window = 2, .padding = 1, .ceil_mode = true}},
    {"2x2 ceil", {3, 5, 7, 9}, {.ceil_mode = true}},
    {"3x3 overlapping", {2, 6, 9, 9}, {.window = 3}},
    {"3x3 overlapping, ceil", {2, 17, 8, 8}, {.window = 3, .ceil_mode = true}},
    {"3x3 padded", {2, 8, 7, 7}, {.window = 3, .padding = 1}},
    {"3x3 over 2x2, ceil", {2, 9, 2, 2}, {.window = 3, .ceil_mode = true}},
    {"4x4 over 3x3, counted, ceil", {1, 3, 3, 3}, {.window = 4, .ceil_mode = true, .count_include_pad = true}},
    {"3x3 padded, ceil", {1, 3, 6, 6}, {.window = 3, .padding = 1, .ceil_mode = true}},
    {"3x3 padded, counted", {2, 8, 7, 7}, {.window = 3, .padding = 1, .count_include_pad = true}},
    {"3x3 padded, counted, ceil",
     {2, 8, 6, 6},
     {.window = 3, .padding = 1, .ceil_mode = true, .count_include_pad = true}},
    {"3x3 every pixel", {1, 4, 5, 6}, {.window = 3, .stride = 1, .padding = 1}},
    {"3x3 with two rows and one column over, 9 channels", {2, 9, 8, 10}, {.window = 3, .stride = 3}},
    {"uneven", {2, 5, 9, 8}, {.window = {3, 2}, .stride = {2, 3}, .padding = {1, 0}}},
    {"uneven, 18 channels", {2, 18, 9, 8}, {.window = {3, 2}, .stride = {2, 3}, .padding = {1, 0}}},
    {"window as large as the input", {2, 9, 6, 6}, {.window = 6, .stride = 6}},
    {"windows of 304 elements", {2, 9, 20, 40}, {.window = {16, 19}, .stride = {3, 19}, .padding = {8, 0}}},
    {"a window of 300 elements that tiles", {1, 2, 2, 600}, {.window = {1, 300}, .stride = {1, 300}}},
    {"strides that skip", {1, 3, 9, 9}, {.window = 2, .stride = 4}},
    {"strides that skip, ceil, 9 channels", {2, 9, 8, 11}, {.window = 2, .stride = {3, 5}, .ceil_mode = true}},
    {"strides that skip, 9 channels", {2, 9, 8, 12}, {.window = 2, .stride = {3, 5}}},
    {"uneven strides that skip, 18 channels", {2, 18, 10, 9}, {.window = {1, 2}, .stride = {3, 4}}},
    {"one element", {1, 1, 1, 1}, {.window = 1, .stride = 1}},
    {"no images", {0, 8, 6, 6}, {.window = 3}},
};

}  // namespace

void add_pooling_cases(ParityTable& table) {
  using namespace kernels;
  for (const PoolCase& c : kPoolingCases) {
    const Shape y = pool2d_output_shape(c.x, c.geometry);
    table.push_back({&max_pool2d, c.name, [=](Run& run) {
                       const Tensor x = run.input(c.x);
                       run(max_pool2d, x, c.geometry, run.output(y), run.output_as(place_dtype(c.geometry), y));
                     }});
    table.push_back({&max_pool2d_backward, c.name, [=](Run& run) {
                       const Tensor x = run.input(c.x), dy = run.input(y);
                       Tensor winners = Tensor::empty(y, x.options());
                       Tensor where = Tensor::empty(
                           y, {.dtype = place_dtype(c.geometry), .device = x.device(), .format = x.format()});
                       max_pool2d(x, c.geometry, winners, where);
                       run(max_pool2d_backward, dy, where, c.geometry, run.output(c.x));
                     }});
    table.push_back({&average_pool2d, c.name, [=](Run& run) {
                       const Tensor x = run.input(c.x);
                       run(average_pool2d, x, c.geometry, run.output(y));
                     }});
    table.push_back({&average_pool2d_backward, c.name, [=](Run& run) {
                       const Tensor dy = run.input(y);
                       run(average_pool2d_backward, dy, c.geometry, run.output(c.x));
                     }});
  }
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> two_channels{1,        nan, -infinity, -infinity, nan, 3, -infinity, 2,  //
                                        infinity, 1,   nan,       infinity,  3,   4, 5,         infinity};
  for (const int64_t channels : {2, 10, 20}) {  // the CPU takes few channels, eight or sixteen at a time
    const std::string of_channels = fmt::format(", {} channels", channels);
    std::vector<float> values;
    for (int64_t c = 0; c < channels; c += 2) values.insert(values.end(), two_channels.begin(), two_channels.end());
    table.push_back({&max_pool2d, "NaN wins, and infinities count" + of_channels, [=](Run& run) {
                       const Shape y{1, channels, 1, 2};
                       const Tensor x = run.given({1, channels, 2, 4}, values);
                       run(max_pool2d, x, {}, run.output(y), run.output_as(DType::u8, y));
                     }});
    for (const int64_t window : {2, 3})
      table.push_back(
          {&max_pool2d, fmt::format("equal elements: the first wins, {0}x{0}{1}", window, of_channels), [=](Run& run) {
             const Shape y{2, channels, 3, 3};
             const Tensor x = run.input({2, channels, 3 * window, 3 * window}, 1, 1);
             run(max_pool2d, x, {.window = window, .stride = window}, run.output(y), run.output_as(DType::u8, y));
           }});
  }
}

}  // namespace tern::test
