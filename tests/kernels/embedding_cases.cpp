#include "tern/kernels/embedding.h"

#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

struct BagCase {
  std::vector<int64_t> lengths;  ///< the elements of each row
  int64_t columns, features;
  bool values = true;
};
const BagCase kBagCases[] = {
    {{1}, 1, 1},
    {{3, 0, 2, 5, 0}, 7, 10},
    {{3, 0, 2, 5, 0}, 7, 10, false},
    {{0, 0, 0}, 4, 3},
    {{}, 4, 3},
    {{70, 1, 33, 32}, 11, 64},
    {{5, 90, 17}, 300, 131},
    {{40, 30, 50}, 2, 33, false},
    {std::vector<int64_t>(300, 4), 2, 33},
    {std::vector<int64_t>(50, 7), 5000, 5},
};

std::string name_of(const BagCase& c) {
  return std::to_string(c.lengths.size()) + " rows times " + to_string(Shape{c.columns, c.features}) +
         (c.values ? "" : " without values");
}

kernels::Bags bags_of(Run& run, const BagCase& c) {
  std::vector<int64_t> offsets{0};
  for (const int64_t length : c.lengths) offsets.push_back(offsets.back() + length);
  const Shape elements{offsets.back()};
  const Tensor values = run.parameter(elements).to(DType::f32);
  return {run.integers(elements, static_cast<uint32_t>(c.columns)),
          Tensor::from({static_cast<int64_t>(offsets.size())}, offsets).to(run.device()), c.values ? values : Tensor()};
}

/// One element for each row.
kernels::Bags lookups_of(Run& run, int64_t rows, int64_t columns) {
  return {run.integers({rows}, static_cast<uint32_t>(columns)), {}, {}};
}

}  // namespace

void add_embedding_cases(ParityTable& table) {
  using namespace kernels;
  for (const BagCase& c : kBagCases) {
    const auto rows = static_cast<int64_t>(c.lengths.size());
    table.push_back({&embedding_bag, name_of(c), [=](Run& run) {
                       const Bags bags = bags_of(run, c);
                       run(embedding_bag, run.input({c.columns, c.features}), bags, run.output({rows, c.features}));
                     }});
    table.push_back(
        {&embedding_bag_backward, name_of(c), [=](Run& run) {
           const Bags bags = bags_of(run, c);
           run(embedding_bag_backward, run.input({rows, c.features}), bags, run.output({c.columns, c.features}));
         }});
  }
  table.push_back({&embedding_bag, "one element for each row", [=](Run& run) {
                     const Bags bags = lookups_of(run, 40, 9);
                     run(embedding_bag, run.input({9, 33}), bags, run.output({40, 33}));
                   }});
  table.push_back({&embedding_bag_backward, "one element for each row", [=](Run& run) {
                     const Bags bags = lookups_of(run, 40, 9);
                     run(embedding_bag_backward, run.input({40, 33}), bags, run.output({9, 33}));
                   }});
  for (const auto& [rows, features] : {std::pair<int64_t, int64_t>{0, 3}, {1, 1}, {5, 33}, {70, 640}})
    table.push_back({&put_rows, to_string(Shape{rows, features}), [=, rows = rows, features = features](Run& run) {
                       std::vector<int64_t> places;
                       for (int64_t i = 0; i < rows; ++i) places.push_back(2 * i + 1);
                       const Tensor row = Tensor::from({rows}, places).to(run.device());
                       Tensor& w = run.changed(run.input({2 * rows + 1, features}));
                       run(put_rows, run.input({rows, features}), row, w);
                     }});
}

}  // namespace tern::test
