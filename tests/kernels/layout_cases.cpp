#include "tern/kernels/layout.h"
#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

struct PermuteCase {
  Shape x;
  kernels::Order order;
};
const PermuteCase kPermuteCases[] = {{{5, 7}, {1, 0}},
                                     {{2, 33, 65}, {0, 2, 1}},
                                     {{3, 4, 5}, {2, 1, 0}},
                                     {{2, 3, 4, 5}, {0, 3, 2, 1}},
                                     {{4, 4}, {0, 1}},
                                     {{2, 3, 4, 5}, {1, 0, 2, 3}},
                                     {{2, 3, 4, 5}, {2, 3, 0, 1}},
                                     {{2, 3, 4, 5}, {0, 2, 3, 1}},
                                     {{7}, {0}},
                                     {{2, 1, 3, 2, 1, 2}, {5, 3, 1, 0, 2, 4}}};

struct BorderCase {
  Shape x;
  kernels::Border border;
};
const BorderCase kBorderCases[] = {{{4, 5}, {1, 2, 3, 4}},
                                   {{2, 3, 8, 8}, {4, 4, 4, 4}},
                                   {{3, 6, 7}, {}},
                                   {{2, 1, 3}, {0, 0, 2, 0}},
                                   {{2, 2}, {1, 1, 1, 1}}};

struct BlockCase {
  Shape whole, block;
  kernels::Offsets offsets;
};
const BlockCase kBlockCases[] = {
    {{9}, {4}, {3}},
    {{6, 5}, {2, 5}, {3, 0}},
    {{6, 5}, {6, 2}, {0, 3}},
    {{2, 6, 5, 7}, {2, 3, 5, 7}, {0, 2, 0, 0}},
    {{2, 6, 5, 7}, {2, 6, 3, 4}, {0, 0, 1, 2}},
    {{2, 6, 5, 7}, {1, 2, 3, 1}, {1, 4, 2, 6}},
    {{3, 4, 5}, {3, 4, 5}, {}},
    {{4, 3}, {0, 3}, {2, 0}},
};

using Conversions = std::vector<kernels::Conversion>;
const std::vector<Shape> kConvertedTogether = {{7},           {5, 3, 7, 2}, {0, 3, 2, 2}, {4, 0, 3, 3},
                                               {64, 9, 3, 3}, {3, 1, 5, 5}, {4, 6, 1, 1}};

const Shape kConvertShapes[] = {{7}, {3, 5}, {2, 5, 3, 7}, {2, 16, 8, 8}, {1, 3, 33, 31}};

}  // namespace

void add_layout_cases(ParityTable& table) {
  using namespace kernels;
  table.push_back({&convert_all, "parameters to activations", [](Run& run) {
                     Conversions all;
                     for (const Shape& shape : kConvertedTogether)
                       all.push_back({run.parameter(shape), run.output(shape)});
                     run(convert_all, std::span<const Conversion>(all));
                   }});
  table.push_back({&convert_all,
                   "gradients to parameters",
                   [](Run& run) {
                     Conversions all;
                     for (int i = 0; i < 150; ++i)
                       for (const Shape& shape : kConvertedTogether)
                         if (i == 0 || shape.rank() == 1)
                           all.push_back({run.input(shape), run.row_major_output(shape)});
                     run(convert_all, std::span<const Conversion>(all));
                   },
                   {.bf16 = false}});
  for (const Shape& shape : kConvertShapes) {
    const std::string name = to_string(shape);
    table.push_back({&convert, name + " to the other format", [=](Run& run) {
                       const Tensor x = run.input(shape);
                       const bool last = shape.rank() == 4 && x.format() == MemoryFormat::row_major;
                       const auto format = last ? MemoryFormat::channels_last : MemoryFormat::row_major;
                       run(convert, x, run.changed(Tensor::zeros(shape, {x.dtype(), x.device(), format})));
                     }});
    table.push_back({&convert, name + " to and from the dtype of parameters", [=](Run& run) {
                       const Tensor x = run.input(shape), parameters = run.parameter(shape);
                       run(convert, x, run.parameter_output(shape));
                       run(convert, parameters, run.output(shape));
                     }});
    table.push_back({&fill, name, [=](Run& run) { run(fill, run.output(shape), 1.5); }});
  }
  // A GPU moves the most elements at once from an aligned one on, half of them from element 4 on, and one from 3 on.
  for (const int64_t first : {0, 4, 3})
    for (const int64_t n : {1, 8, 4101})
      table.push_back(
          {&convert, join({n, " elements from ", first, " on to and from the dtype of parameters"}), [=](Run& run) {
             const auto part = [=](const Tensor& whole) { return whole.slice(first, first + n); };
             const Shape whole{first + n};
             const Tensor x = part(run.input(whole)), parameters = part(run.parameter(whole));
             Tensor wide = part(run.parameter_output(whole)), narrow = part(run.output(whole));
             run(convert, x, wide);
             run(convert, parameters, narrow);
           }});
  for (const auto& c : kPermuteCases) {
    Shape y = c.x;
    for (int d = 0; d < y.rank(); ++d) y[d] = c.x[c.order[static_cast<size_t>(d)]];
    table.push_back({&permute,
                     to_string(c.x) + " to " + to_string(y),
                     [=](Run& run) { run(permute, run.input(c.x), c.order, run.output(y)); },
                     {.channels_last = false}});
  }
  for (const auto& c : kBorderCases) {
    Shape padded = c.x;
    padded[-2] += c.border.top + c.border.bottom;
    padded[-1] += c.border.left + c.border.right;
    const std::string name = to_string(c.x) + " to " + to_string(padded);
    table.push_back({&reflection_pad,
                     name,
                     [=](Run& run) { run(reflection_pad, run.input(c.x), c.border, run.output(padded)); },
                     {.channels_last = false}});
    table.push_back({&reflection_pad_backward,
                     name,
                     [=](Run& run) { run(reflection_pad_backward, run.input(padded), c.border, run.output(c.x)); },
                     {.channels_last = false}});
  }
  for (const auto& c : kBlockCases) {
    const std::string name = to_string(c.block) + " in " + to_string(c.whole);
    table.push_back(
        {&extract, name, [=](Run& run) { run(extract, run.input(c.whole), c.offsets, run.output(c.block)); }});
    table.push_back({&insert, name, [=](Run& run) {
                       const Tensor x = run.input(c.block);
                       run(insert, x, c.offsets, run.changed(run.input(c.whole)));
                     }});
  }
}

}  // namespace tern::test
