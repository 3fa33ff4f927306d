#include <cmath>
#include <limits>

#include "tern/kernels/softmax_chunk.h"
#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

struct ChunkCase {
  std::vector<int64_t> counts;  ///< labels of each row
  int64_t columns, classes, first;
  int64_t top = 5;
};
const ChunkCase kChunkCases[] = {
    {{1}, 1, 1, 0, 1},
    {{3, 0, 1}, 10, 30, 10, 3},
    {{2, 2, 0, 5, 1}, 33, 40, 7},
    {{4, 9}, 3, 3, 0},
    {std::vector<int64_t>(64, 4), 1500, 2000, 500},
    {{0, 0}, 5, 9, 4},
};

std::string name_of(const ChunkCase& c) {
  return join({Shape{std::ssize(c.counts), c.columns}, " from ", c.first, " of ", c.classes});
}

kernels::Bags labels_of(Run& run, const ChunkCase& c) {
  std::vector<int64_t> offsets{0};
  for (const int64_t count : c.counts) offsets.push_back(offsets.back() + count);
  return {run.integers({offsets.back()}, static_cast<uint32_t>(c.classes)),
          Tensor::from({std::ssize(offsets)}, offsets).to(run.device()),
          {}};
}

void add_case(ParityTable& table, const ChunkCase& c) {
  using namespace kernels;
  const auto rows = std::ssize(c.counts);
  const Shape chunk{rows, c.columns};
  table.push_back(
      {&softmax_chunk, name_of(c), [=](Run& run) {
         const Tensor z = run.input(chunk, -4, 9);
         Tensor &maximum = run.changed(run.parameter({rows}, -3, 12)), &sum = run.changed(run.parameter({rows}, 1, 5));
         run(softmax_chunk, z, labels_of(run, c), c.first, maximum, sum, run.changed(run.parameter({rows})));
       }});
  table.push_back({&softmax_chunk_loss, name_of(c), [=](Run& run) {
                     const Tensor maximum = run.parameter({rows}, -3, 12), sum = run.parameter({rows}, 1, 5),
                                  hits = run.parameter({rows}, -9, 9);
                     Tensor& logsumexp = run.parameter_output({rows});
                     run(softmax_chunk_loss, maximum, sum, hits, labels_of(run, c), logsumexp,
                         run.parameter_output({}));
                   }});
  table.push_back({&softmax_chunk_backward, name_of(c), [=](Run& run) {
                     const Tensor z = run.input(chunk, -4, 4), logsumexp = run.parameter({rows}, 3, 6);
                     run(softmax_chunk_backward, logsumexp, labels_of(run, c), c.first, run.parameter({}, 0.5, 2), z,
                         run.output(chunk));
                   }});
  table.push_back({&top_classes, name_of(c), [=](Run& run) {
                     const Tensor z = run.input(chunk, -4, 9);
                     const Tensor before = run.parameter({rows, 1}, 2, 9);  // a best class, and places that are free
                     constexpr float kLeast = -std::numeric_limits<float>::infinity();
                     Tensor values = Tensor::full({rows, c.top}, kLeast);
                     for (int64_t n = 0; n < rows; ++n)
                       values.data<float>()[n * c.top] =
                           static_cast<float>(before.to_vector<double>()[static_cast<size_t>(n)]);
                     Tensor& best = run.changed(values.to(before.dtype()).to(run.device()));
                     run(top_classes, z, c.first, best,
                         run.changed(Tensor::full({rows, c.top}, -1, {DType::i64}).to(run.device())));
                   }});
}

}  // namespace

void add_softmax_chunk_cases(ParityTable& table) {
  using namespace kernels;
  for (const ChunkCase& c : kChunkCases) add_case(table, c);
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  table.push_back(
      {&softmax_chunk, "the first chunk, with impossible classes", [=](Run& run) {
         const Tensor z = run.given({3, 3}, {1, -infinity, 2, 0, 500, -400, -infinity, -infinity, -infinity});
         const auto of = [&](const std::vector<float>& values) -> Tensor& {
           return run.changed(run.given({3}, values).to(parameter_dtype(z.dtype())));
         };
         const Bags labels = labels_of(run, {.counts = {1, 1, 1}, .columns = 3, .classes = 1, .first = 0});
         Tensor &maximum = of({-infinity, -infinity, -infinity}), &sum = of({0, 0, 0});
         run(softmax_chunk, z, labels, 0, maximum, sum, of({0, 0, 0}));
       }});
  table.push_back({&softmax_chunk_backward,
                   "a row that is nearly right, whose gradient is much smaller than its probability", [=](Run& run) {
                     const Tensor z = run.given({1, 3}, {0, -4, -4.5f});
                     const auto of = [&](const Shape& shape, double value) {
                       return Tensor::full(shape, value, {parameter_dtype(z.dtype())}).to(run.device());
                     };
                     const Bags labels = labels_of(run, {.counts = {1}, .columns = 3, .classes = 1, .first = 0});
                     run(softmax_chunk_backward, of({1}, std::log1p(std::exp(-4.0) + std::exp(-4.5))), labels, 0,
                         of({}, 1), z, run.output({1, 3}));
                   }});
  table.push_back(
      {&top_classes, "equal logits, NaN and impossible classes", [=](Run& run) {
         const Tensor z = run.given({2, 6}, {2, 3, 3, nan, 2, -infinity, nan, -infinity, 1, 1, 1, 1});
         const DType wide = parameter_dtype(z.dtype());
         Tensor& best = run.changed(Tensor::full({2, 4}, -infinity, {wide}).to(run.device()));
         run(top_classes, z, 100, best, run.changed(Tensor::full({2, 4}, -1, {DType::i64}).to(run.device())));
       }});
}

}  // namespace tern::test
