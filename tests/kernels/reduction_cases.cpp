#include "tern/kernels/reduction.h"
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
}

}  // namespace tern::test
