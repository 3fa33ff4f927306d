#include <limits>
#include "tern/kernels/matmul.h"

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

}  // namespace

void add_matmul_cases(ParityTable& table) {
  using namespace kernels;
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
