#include "tern/kernels/reduction.h"

#include <limits>

#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

struct ReductionCase {
  Shape large, small;
};
const ReductionCase kReductionCases[] = {
    {{7}, {1}},
    {{3, 33}, {1, 33}},
    {{3, 33}, {3, 1}},
    {{3, 33}, {1, 1}},
    {{2, 5, 3, 7}, {1, 5, 1, 1}},
    {{2, 5, 3, 7}, {2, 5, 1, 1}},
    {{2, 5, 3, 7}, {2, 1, 3, 7}},
    {{4, 16, 9, 9}, {1, 1, 1, 1}},
    {{2, 5, 3, 7}, {2, 5, 3, 7}},
    {{64, 100}, {1, 100}},
    {{5000, 3}, {1, 3}},  // in parts, as the next two
    {{3000, 64}, {1, 64}},
    {{3, 5000}, {3, 1}},
    // Summed and kept dimensions alternate more often, or the kept ones of a channels-last input lie in another order.
    {{2, 5, 3, 7}, {1, 5, 3, 7}},
    {{2, 5, 3, 7}, {2, 5, 1, 7}},
    {{2, 5, 3, 7}, {2, 5, 3, 1}},
    {{2, 5, 3, 7}, {1, 5, 1, 7}},
    {{2, 5, 3, 7}, {1, 5, 3, 1}},
    {{2, 5, 3, 7}, {2, 1, 3, 1}},
    {{3, 70, 2, 90}, {3, 1, 2, 1}},
    {{3, 70, 2, 90}, {1, 70, 1, 90}},
    {{6, 8, 2, 70, 2}, {6, 8, 1, 70, 1}},
    {{2, 3, 2, 3, 2, 3}, {1, 3, 1, 3, 1, 3}},
    {{2, 1, 3, 2, 1, 3, 2, 5}, {2, 1, 1, 2, 1, 3, 1, 5}},
    {{0, 3}, {1, 3}},
    {{3, 0, 2}, {3, 1, 2}},
    {{2, 3, 0}, {1, 3, 0}},
};

}  // namespace

void add_reduction_cases(ParityTable& table) {
  using namespace kernels;
  for (const auto& [large, small] : kReductionCases) {
    const std::string name = to_string(large) + " to " + to_string(small);
    table.push_back({&sum, name, [large = large, small = small](Run& run) {
                       const Tensor x = run.input(large, -0.5, 1);
                       run(sum, x, 0.5, run.row_major_output(small));
                     }});
    table.push_back({&broadcast_to, name, [large = large, small = small](Run& run) {
                       const Tensor x = run.input(small);
                       run(broadcast_to, x, 0.5, run.output(large));
                     }});
  }
  table.push_back({&sum,
                   "[1000, 2, 250, 2, 1] to [1, 2, 1, 2, 1]",
                   [](Run& run) {
                     const Tensor x = run.input({1000, 2, 250, 2, 1}, -0.5, 1);
                     run(sum, x, 1, run.row_major_output({1, 2, 1, 2, 1}));
                   },
                   {.channels_last = false}});
  for (const Shape& shape : {Shape{5, 33}, {2, 5, 3, 7}, {3, 16, 40, 40}})
    for (const bool in_place : {false, true})
      table.push_back({&relu_backward_sums, to_string(shape) + (in_place ? " in place" : ""), [=](Run& run) {
                         const Tensor y = run.input(shape);
                         Tensor& dy = run.changed(run.input(shape));
                         run(relu_backward_sums, y, dy, in_place ? dy : run.output(shape),
                             run.parameter_output({shape[1]}));
                       }});
  for (const Shape& shape : {Shape{1, 1}, {3, 7}, {5, 32}, {4, 100}, {200, 3}, {2, 5000}, {0, 4}}) {
    const std::string name = to_string(shape);
    for (const auto* kernel : {&row_max, &row_min, &row_logsumexp})
      table.push_back({kernel, name, [=](Run& run) { run(*kernel, run.input(shape), run.output({shape[0]})); }});
    table.push_back({&row_argmax, name,
                     [=](Run& run) { run(row_argmax, run.input(shape), run.output_as(DType::i64, {shape[0]})); }});
  }
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> rows(size_t{6} * 40, -1);
  rows[5] = rows[39] = nan;                                      // row 0: two NaN
  rows[40 + 38] = rows[40 + 7] = infinity;                       // row 1
  for (size_t c = 0; c < 40; ++c) rows[2 * 40 + c] = -infinity;  // row 2
  rows[3 * 40 + 33] = rows[3 * 40 + 34] = rows[3 * 40 + 2] = 0;  // row 3: ties; row 4: all equal
  rows[5 * 40 + 20] = -infinity;
  table.push_back({&relu_backward_sums, "NaN passes the gradient", [=](Run& run) {
                     const Tensor y = run.given({6, 40}, rows), dy = run.input({6, 40});
                     run(relu_backward_sums, y, dy, run.output({6, 40}), run.parameter_output({40}));
                   }});
  for (const auto* kernel : {&row_max, &row_min, &row_logsumexp})
    table.push_back({kernel, "ties, NaN and infinities", [=](Run& run) {
                       run(*kernel, run.given({6, 40}, rows), run.output({6}));
                     }});
  table.push_back({&row_argmax, "ties, NaN and infinities", [=](Run& run) {
                     run(row_argmax, run.given({6, 40}, rows), run.output_as(DType::i64, {6}));
                   }});
}

}  // namespace tern::test
