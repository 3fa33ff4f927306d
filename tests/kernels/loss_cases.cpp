#include <limits>

#include "tern/kernels/loss.h"
#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

const Shape kRowShapes[] = {{1, 1}, {3, 10}, {5, 33}, {2, 3, 7}, {64, 10}, {2, 1000}, {9}};

const Shape kBinaryShapes[] = {{}, {1}, {5, 33}, {2, 3, 4, 5}, {64, 103}, {3, 5000}};

struct CrossEntropyCase {
  int64_t rows, classes;
  double smoothing = 0;
};
const CrossEntropyCase kCrossEntropyCases[] = {{1, 2}, {3, 10}, {64, 10}, {5, 35, 0.1}, {2, 1000, 0.3}, {7, 1}};

}  // namespace

void add_loss_cases(ParityTable& table) {
  using namespace kernels;
  for (const Shape& shape : kRowShapes) {
    const std::string name = to_string(shape);
    for (const auto* kernel : {&softmax, &log_softmax})
      table.push_back({kernel, name, [=](Run& run) { run(*kernel, run.input(shape, -5, 90), run.output(shape)); }});
    table.push_back({&softmax_backward, name, [=](Run& run) {
                       const Tensor y = run.input(shape, 0, 1), dy = run.input(shape);
                       run(softmax_backward, y, dy, run.output(shape));
                     }});
    table.push_back({&log_softmax_backward, name, [=](Run& run) {
                       const Tensor y = run.input(shape, -6, -1), dy = run.input(shape);
                       run(log_softmax_backward, y, dy, run.output(shape));
                     }});
    table.push_back({&mse, name, [=](Run& run) {
                       const Tensor x = run.input(shape), target = run.input(shape);
                       run(mse, x, target, run.parameter_output({}));
                     }});
    table.push_back({&mse_backward, name, [=](Run& run) {
                       const Tensor x = run.input(shape), target = run.input(shape);
                       run(mse_backward, x, target, run.parameter({}, 0.5, 2), run.output(shape));
                     }});
  }
  for (const Shape& shape : kBinaryShapes) {
    const std::string name = to_string(shape);
    table.push_back({&binary_cross_entropy, name, [=](Run& run) {
                       const Tensor x = run.input(shape, -9, 9), target = run.parameter(shape, 0, 1).to(x.format());
                       run(binary_cross_entropy, x, target, run.parameter_output({}));
                     }});
    table.push_back({&binary_cross_entropy_backward, name, [=](Run& run) {
                       const Tensor x = run.input(shape, -9, 9), target = run.parameter(shape, 0, 1).to(x.format());
                       run(binary_cross_entropy_backward, x, target, run.parameter({}, 0.5, 2), run.output(shape));
                     }});
  }
  const auto binary = [&table](const char* name, const Shape& shape, const std::vector<float>& logits,
                               const std::vector<float>& targets) {
    const auto target_of = [=](const Tensor& x) {
      return Tensor::from(shape, targets).to(parameter_dtype(x.dtype())).to(x.device());
    };
    table.push_back({&binary_cross_entropy, name, [=](Run& run) {
                       const Tensor x = run.given(shape, logits);
                       run(binary_cross_entropy, x, target_of(x), run.parameter_output({}));
                     }});
    table.push_back({&binary_cross_entropy_backward, name, [=](Run& run) {
                       const Tensor x = run.given(shape, logits);
                       run(binary_cross_entropy_backward, x, target_of(x), run.parameter({}, 0.5, 2),
                           run.output(shape));
                     }});
  };
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  binary("certain and wrong", {4}, {-500, 90, 1000, -88}, {1, 0, 0, 1});
  binary("certain and right", {3}, {-20, 16, -12}, {0, 1, 0});  // log(1 + e) for e far below 1
  binary("infinite and right", {2}, {infinity, 0}, {0.5, 0});
  binary("NaN among the logits", {3}, {1, nan, -1}, {0, 0, 1});
  binary("NaN among the targets", {3}, {1, 0.5, -1}, {0, nan, 1});
  const std::vector<float> impossible{1, -infinity, 2, 0, 500, -400};
  for (const auto* kernel : {&softmax, &log_softmax})
    table.push_back({kernel, "an impossible class and a certain one", [=](Run& run) {
                       run(*kernel, run.given({2, 3}, impossible), run.output({2, 3}));
                     }});
  table.push_back(
      {&cross_entropy, "an impossible class and a certain one", [=](Run& run) {
         const Tensor x = run.given({2, 3}, impossible), labels = Tensor::zeros({2}, {DType::i64, x.device()});
         Tensor& loss = run.parameter_output({});
         run(cross_entropy, x, labels, 0, loss, run.parameter_output({2, 3}));
       }});
  for (const auto& c : kCrossEntropyCases) {
    const Shape shape{c.rows, c.classes};
    const std::string name = to_string(shape) + (c.smoothing > 0 ? " smoothed" : "");
    const auto classes = static_cast<uint32_t>(c.classes);
    table.push_back({&cross_entropy, name, [=](Run& run) {
                       const Tensor x = run.input(shape, -4, 9), labels = run.integers({c.rows}, classes);
                       Tensor& loss = run.parameter_output({});
                       run(cross_entropy, x, labels, c.smoothing, loss, run.parameter_output(shape));
                     }});
    table.push_back({&cross_entropy_backward, name, [=](Run& run) {
                       const Tensor probabilities = run.parameter(shape, 0, 1),
                                    labels = run.integers({c.rows}, classes);
                       const Tensor dloss = run.parameter({}, 0.5, 2);
                       run(cross_entropy_backward, probabilities, labels, c.smoothing, dloss, run.output(shape));
                     }});
  }
  for (const double smoothing : {0.0, 0.1})
    table.push_back({&weighted_targets, join({"smoothing ", smoothing}), [=](Run& run) {
                       const Tensor weights = run.parameter({5}, 0.5, 2), labels = run.integers({30}, 5);
                       run(weighted_targets, weights, labels, {smoothing, 3}, run.parameter_output({30, 5}),
                           run.output_as(DType::u8, {30, 5}), run.parameter_output({30}));
                     }});
  for (const bool has_norm : {true, false})
    table.push_back({&keep_loss, has_norm ? "of three steps in two rows" : "without a norm", [=](Run& run) {
                       Tensor& rows = run.output_as(DType::f64, {2, 2});
                       Tensor& next = run.changed(Tensor::zeros({}, {.dtype = DType::i64, .device = run.device()}));
                       for (const double step : {1, 2, 3}) {
                         const Tensor norm = Tensor::full({}, step / 7, {.dtype = DType::f64, .device = run.device()});
                         run(keep_loss, run.input({}), has_norm ? norm : Tensor(), rows, next);
                       }
                     }});
}

}  // namespace tern::test
