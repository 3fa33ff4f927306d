#include "tern/kernels/embedding.h"
#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

/// A sparse matrix: the number of elements of each row.
struct EmbeddingCase {
  const char* name;
  std::vector<int64_t> rows;
  int64_t columns, features;
};
const EmbeddingCase kEmbeddingCases[] = {
    {"one element", {1}, 1, 1},
    {"an empty row", {3, 0, 5, 1}, 7, 33},
    {"no element", {0, 0}, 4, 3},
    {"more elements than threads of a block", std::vector<int64_t>(40, 17), 1000, 8},
    {"one column for all", std::vector<int64_t>(9, 40), 1, 70},
};

Tensor offsets_of(const std::vector<int64_t>& rows, Device device) {
  std::vector<int64_t> offsets = {0};
  for (const int64_t elements : rows) offsets.push_back(offsets.back() + elements);
  return Tensor::from<int64_t>({std::ssize(offsets)}, offsets).to(device);
}

}  // namespace

void add_embedding_cases(ParityTable& table) {
  using namespace kernels;
  for (const EmbeddingCase& each : kEmbeddingCases)
    for (const bool with_values : {false, true}) {
      const std::string name = std::string(each.name) + (with_values ? ", with values" : "");
      const auto body = [=](Run& run, const auto& kernel, const Shape& dense, const Shape& result) {
        const Tensor x = run.parameter(dense), offsets = offsets_of(each.rows, run.device());
        const Shape elements{offsets.to(Device{}).data<int64_t>()[each.rows.size()]};
        const Tensor indices = run.integers(elements, static_cast<uint32_t>(each.columns));
        const Tensor values = with_values ? run.parameter(elements) : Tensor();
        run(kernel, x, indices, offsets, values, run.parameter_output(result));
      };
      const Shape weight{each.columns, each.features}, y{std::ssize(each.rows), each.features};
      const ParityOptions options = {.bf16 = false, .channels_last = false};
      table.push_back({&embedding_bag, name, [=](Run& run) { body(run, embedding_bag, weight, y); }, options});
      table.push_back(
          {&embedding_bag_backward, name, [=](Run& run) { body(run, embedding_bag_backward, y, weight); }, options});
    }
}

}  // namespace tern::test
