#include <fmt/format.h>

#include "tern/autograd/functional.h"
#include "tern/layers/initialize.h"
#include "tern/layers/lstm.h"
#include "tests/bench/case.h"

namespace tern::bench {
namespace {

Tensor draw(const Shape& shape, MemoryFormat format = MemoryFormat::row_major) {
  const Tensor tensor = Tensor::empty(shape);
  normal(1)(tensor, RandomStream({.seed = 1, .purpose = Purpose::initialize}));
  return tensor.to(format);
}

/// Appends a forward and a backward pass of `operation`, which maps Variables of the `inputs` to one Variable.
template <class Operation>
void add(std::vector<Case>& cases, const char* name, const std::vector<Shape>& shapes, const Operation& operation,
         MemoryFormat format = MemoryFormat::row_major) {
  for (const int threads : kThreads)
    cases.push_back({fmt::format("operation/{}/t{}", name, threads), threads, [=] {
                       std::vector<Tensor> inputs;
                       for (const Shape& shape : shapes)
                         inputs.push_back(draw(shape, shape.rank() == 4 ? format : MemoryFormat::row_major));
                       return [=, dy = Tensor()]() mutable {
                         std::vector<Variable> leaves;
                         for (const Tensor& input : inputs) leaves.push_back(Variable::leaf(input));
                         const Variable y = operation(leaves);
                         if (!dy.defined()) dy = draw(y.shape(), y.value().format());
                         y.backward(dy);
                       };
                     }});
}

void add_lstm(std::vector<Case>& cases) {
  for (const int threads : kThreads)
    cases.push_back({fmt::format("operation/lstm/t{}", threads), threads, [] {
                       const auto model = std::make_shared<Lstm>(
                           Lstm::Options{.in = 512, .hidden = 1024, .projection = 512, .layers = 3});
                       model->initialize(1);
                       return [=, x = draw({100, 16, 512}), dy = draw({100, 16, 512})] {
                         model->zero_gradients();
                         (*model)(Variable::leaf(x)).backward(dy);
                       };
                     }});
}

}  // namespace

// tests/bench/torch_operations.py measures PyTorch on the same operations.
void add_operations(std::vector<Case>& cases) {
  add_lstm(cases);
  const Shape heads{8, 8, 512, 64};
  add(cases, "attention", {heads, heads, heads},
      [](const auto& v) { return attention(v[0], v[1], v[2], {.causal = true}); });
  add(cases, "layer_norm", {{4096, 1024}, {1024}, {1024}},
      [](const auto& v) { return layer_norm(v[0], {1024}, v[1], v[2]); });
  add(cases, "gelu", {{4096, 1024}}, [](const auto& v) { return gelu(v[0]); });
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < 4096; ++i) tokens.push_back(i * 7919 % 50000);
  const Tensor indices = Tensor::from({4096}, tokens);
  add(cases, "embedding", {{50000, 256}}, [=](const auto& v) { return embedding(indices, v[0]); });
  std::vector<int64_t> classes;
  for (int64_t i = 0; i < 4096; ++i) classes.push_back(i * 7919 % 2000);
  const Tensor labels = Tensor::from({4096}, classes);
  const std::pair<const char*, CrossEntropyOptions> losses[] = {
      {"cross_entropy", {}},
      {"cross_entropy_ignored", {.ignored_label = 0}},
      {"cross_entropy_weighted", {.weights = Tensor::full({2000}, 0.5)}},
      {"cross_entropy_sum", {.reduction = LossReduction::sum}}};
  for (const auto& row : losses)
    add(cases, row.first, {{4096, 2000}},
        [labels, options = row.second](const auto& v) { return cross_entropy(v[0], labels, options); });
  add(
      cases, "depthwise", {{16, 256, 28, 28}, {256, 1, 3, 3}},
      [](const auto& v) { return conv2d(v[0], v[1], {}, {.padding = 1, .groups = 256}); }, MemoryFormat::channels_last);
}

}  // namespace tern::bench
