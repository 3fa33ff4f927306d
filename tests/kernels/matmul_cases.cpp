#include <limits>
#include "tern/kernels/block_dct.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/orthonormal.h"

#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

struct MatmulCase {
  Shape a, b;
  kernels::MatmulOptions options = {};
};
const MatmulCase kMatmulCases[] = {
    {{1, 1}, {1, 1}},
    {{5, 7}, {7, 3}},
    {{7, 5}, {7, 3}, {.transpose_a = true}},
    {{5, 7}, {3, 7}, {.transpose_b = true}},
    {{7, 5}, {3, 7}, {.transpose_a = true, .transpose_b = true}},
    {{3, 5, 7}, {3, 7, 2}},
    {{3, 5, 7}, {7, 2}},
    {{3, 5, 7}, {2, 7}, {.transpose_b = true}},
    {{2, 3, 7, 5}, {2, 3, 7, 4}, {.transpose_a = true}},
    {{33, 100}, {100, 65}},
    {{1, 257}, {257, 1}},
    {{2, 0}, {0, 4}},
    {{0, 2}, {0, 4}, {.transpose_a = true}},
    {{3, 2, 0}, {3, 4, 0}, {.transpose_b = true}},
    {{5, 5, 0}, {0, 5}},
    {{2, 0, 3}, {3, 4}},
    {{0, 2, 3}, {0, 3, 4}},
    {{4, 3}, {3, 0}},
};

struct NarrowCase {
  int64_t rows, columns, k;
};
const NarrowCase kNarrowCases[] = {{1, 1, 1},   {7, 5, 1},   {33, 100, 2}, {130, 67, 3}, {19, 300, 5},
                                   {12, 40, 8}, {12, 40, 9}, {0, 4, 2},    {4, 0, 2}};

/// Sides and runs of many sizes, even and odd, with rests, and several small blocks in a strip.
const Shape kDctShapes[] = {{},       {1},       {64},      {100},         {65, 1},  {3, 67},  {67, 3},  {128, 96},
                            {50, 50}, {66, 124}, {100, 14}, {20, 6, 5, 5}, {62, 33}, {6, 400}, {65, 67}, {0, 4}};

/// The matrices of the blocks of a tensor, on the run's device.
kernels::BlockCosines cosines_for(const Run& run, const Shape& shape, const kernels::BlockDctOptions& options) {
  const kernels::BlockGrid grid(shape, options.side, options.run);
  const auto matrix = [&](int64_t n) { return kernels::cosines(n).to(run.device()); };
  return {matrix(grid.tile_rows), matrix(grid.tile_columns), matrix(kernels::rest_of(grid))};
}

/// The inverse of few coefficients other than 0, and of many.
void run_block_dct(Run& run, const Shape& shape, const kernels::BlockDctOptions& options, bool is_sparse) {
  std::vector<float> values = run.input(shape).to(Device{}).to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i)
    if (is_sparse && i % 11 != 3) values[i] = 0;
  const Tensor x = run.given(shape, values);
  run(kernels::block_dct, x, cosines_for(run, shape, options), options, run.output(shape));
}

struct LinearCase {
  int64_t rows, in, out;
  bool bias = true, relu = false;
};
const LinearCase kLinearCases[] = {
    {1, 1, 1},
    {4, 7, 3},
    {4, 7, 3, false},
    {4, 7, 3, true, true},
    {33, 100, 10},
    {1, 65, 129, true, true},
    {64, 800, 37, false, true},
    {0, 7, 3},
    {0, 1024, 1024, true, true},
    {4, 0, 3, true, true},
    {4, 0, 3, false},
    {4, 7, 0},
};

/// A column of zeros, one that depends on the first one, and others.
Tensor narrow_factor(Run& run, const Shape& shape) {
  std::vector<float> values = run.input(shape).to(Device{}).to_vector<float>();
  const auto k = static_cast<size_t>(shape[1]);
  for (size_t i = 0; k > 2 && i < values.size(); i += k) {
    values[i + 1] = 0;
    values[i + 2] = -0.5f * values[i];
  }
  return Tensor::from(shape, values).to(run.device());
}

}  // namespace

void add_matmul_cases(ParityTable& table) {
  using namespace kernels;
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 5}, Shape{300, 2}, Shape{1000, 7}}) {
    const ParityOptions floats{.bf16 = false, .channels_last = false};
    table.push_back({&orthonormalize, to_string(shape),
                     [=](Run& run) { run(orthonormalize, run.changed(narrow_factor(run, shape))); }, floats});
    table.push_back({&keep_columns, to_string(shape),
                     [=](Run& run) {
                       const Tensor q = narrow_factor(run, shape);
                       run(keep_columns, q, run.changed(run.input(shape).to(DType::f32)));
                     },
                     floats});
  }
  const ParityOptions row_major{.channels_last = false};
  for (const auto& c : kMatmulCases)
    table.push_back({&matmul,
                     to_string(c.a) + (c.options.transpose_a ? "T" : "") + " by " + to_string(c.b) +
                         (c.options.transpose_b ? "T" : ""),
                     [=](Run& run) {
                       const Tensor a = run.input(c.a), b = run.input(c.b);
                       run(matmul, a, b, c.options, run.output(matmul_output_shape(c.a, c.b, c.options)));
                     },
                     row_major});
  for (const auto& [rows, columns, k] : kNarrowCases) {
    const Shape large = {rows, columns}, left = {rows, k}, right = {columns, k};
    const std::string name = to_string(large) + " with factors of " + std::to_string(k);
    table.push_back({&add_and_project, name,
                     [=](Run& run) {
                       const Tensor x = run.input(large), y = run.input(large), q = run.input(right);
                       Tensor& m = run.output(large);
                       run(add_and_project, x, y, q, m, run.output(left));
                     },
                     row_major});
    table.push_back({&subtract_product, name,
                     [=](Run& run) {
                       const Tensor p = run.input(left), q = run.input(right), m = run.input(large);
                       Tensor& y = run.output(large);
                       run(subtract_product, p, q, m, y, run.output(large));
                     },
                     row_major});
    table.push_back({&matmul, to_string(large) + "T by " + to_string(left),
                     [=](Run& run) {
                       const Tensor m = run.input(large), p = run.input(left);
                       run(matmul, m, p, MatmulOptions{.transpose_a = true}, run.output(right));
                     },
                     row_major});
  }
  const BlockDctOptions transforms[] = {{},
                                        {.side = 5, .run = 7, .scale = 0.25},
                                        {.inverse = true, .scale = 3},
                                        {.side = 16, .run = 10, .inverse = true, .sign = true}};
  for (const Shape& shape : kDctShapes)
    for (const BlockDctOptions& options : transforms)
      for (const bool is_sparse : {false, true})
        table.push_back({&block_dct,
                         to_string(shape) + (options.inverse ? " back" : "") + (is_sparse ? ", sparse" : ""),
                         [=](Run& run) { run_block_dct(run, shape, options, is_sparse); },
                         {.bf16 = false, .channels_last = false}});
  table.push_back({&linear, "NaN passes the relu",
                   [](Run& run) {
                     const Tensor x = run.given({2, 1}, {std::numeric_limits<float>::quiet_NaN(), 1});
                     run(linear, x, run.parameter({9, 1}), run.parameter({9}), true, run.output({2, 9}));
                   },
                   row_major});
  for (const auto& c : kLinearCases) {
    const std::string name = to_string(Shape{c.rows, c.in, c.out}) + (c.bias ? " bias" : "") + (c.relu ? " relu" : "");
    table.push_back({&linear, name,
                     [=](Run& run) {
                       const Tensor x = run.input({c.rows, c.in}), w = run.parameter({c.out, c.in});
                       const Tensor bias = c.bias ? run.parameter({c.out}) : Tensor();
                       run(linear, x, w, bias, c.relu, run.output({c.rows, c.out}));
                     },
                     row_major});
    table.push_back({&linear_backward_data, name,
                     [=](Run& run) {
                       const Tensor dy = run.input({c.rows, c.out}), w = run.parameter({c.out, c.in});
                       run(linear_backward_data, dy, w, run.output({c.rows, c.in}));
                     },
                     row_major});
    table.push_back({&linear_backward_weights, name,
                     [=](Run& run) {
                       const Tensor dy = run.input({c.rows, c.out}), x = run.input({c.rows, c.in});
                       Tensor none;
                       Tensor& db = c.bias ? run.parameter_output({c.out}) : none;
                       run(linear_backward_weights, dy, x, run.parameter_output({c.out, c.in}), db);
                     },
                     row_major});
  }
}

}  // namespace tern::test
