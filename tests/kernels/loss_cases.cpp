#include <functional>
#include <limits>
#include <optional>

#include "tern/kernels/loss.h"
#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

const Shape kRowShapes[] = {{1, 1}, {3, 10}, {5, 33}, {2, 3, 7}, {64, 10}, {2, 1000}, {9}};

const Shape kBinaryShapes[] = {{}, {1}, {5, 33}, {2, 3, 4, 5}, {64, 103}, {3, 5000}};

struct CrossEntropyCase {
  int64_t rows, classes;
  double smoothing = 0;
  bool weighted = false;
  std::optional<int64_t> ignored = {};
};
const CrossEntropyCase kCrossEntropyCases[] = {{1, 2},
                                               {3, 10},
                                               {64, 10},
                                               {5, 35, 0.1},
                                               {2, 1000, 0.3},
                                               {7, 1},
                                               {64, 10, 0, true},
                                               {300, 10, 0, false, 3},
                                               {300, 10, 0.1, true, 10},
                                               {9, 1300, 0, true, 1300},
                                               {9, 1300, 0.2, true},
                                               {3, 1, 0, false, 0}};  // no row counts

/// The cases of one loss for all rows, their mean or their sum, and of a loss for each row.
void add_cross_entropy(ParityTable& table, const CrossEntropyCase& c) {
  using namespace kernels;
  const Shape shape{c.rows, c.classes};
  const auto targets_of = [=](Run& run) {
    const bool beside = c.ignored == c.classes;  // the ignored label is no class
    const Tensor labels = run.integers({c.rows}, static_cast<uint32_t>(c.classes + (beside ? 1 : 0)));
    return LabelTargets{labels, c.smoothing, c.weighted ? run.parameter({c.classes}, 0.5, 2) : Tensor(), c.ignored};
  };
  for (const char* form : {"mean", "sum", "each"}) {
    const bool is_mean = form == std::string("mean");
    const Shape loss_shape = form == std::string("each") ? Shape{c.rows} : Shape{};
    const std::string name =
        join({shape, ", ", form, c.smoothing > 0 ? ", smoothed" : "", c.weighted ? ", weighted" : "",
              c.ignored ? join({", without label ", *c.ignored}) : ""});
    table.push_back({&cross_entropy, name, [=](Run& run) {
                       const Tensor x = run.input(shape, -4, 9);
                       const LabelTargets targets = targets_of(run);
                       Tensor sum;  // has no divisor
                       Tensor &loss = run.parameter_output(loss_shape),
                              &divisor = is_mean ? run.output_as(DType::f64, {}) : sum;
                       run(cross_entropy, x, targets, loss, divisor, run.parameter_output(shape));
                     }});
    table.push_back({&cross_entropy_backward, name, [=](Run& run) {
                       const Tensor probabilities = run.parameter(shape, 0, 1);
                       const LabelTargets targets = targets_of(run);
                       const Tensor dloss = run.parameter(loss_shape, 0.5, 2);
                       const Tensor divisor = Tensor::full({}, 7.5, {.dtype = DType::f64, .device = run.device()});
                       run(cross_entropy_backward, probabilities, targets, dloss, is_mean ? divisor : Tensor(),
                           run.output(shape));
                     }});
  }
}

/// The cases of the mean, and of one loss for each element.
void add_binary(ParityTable& table, const std::string& of, const Shape& shape,
                const std::function<Tensor(Run&)>& logits, const std::function<Tensor(Run&)>& targets) {
  using namespace kernels;
  for (const bool each : {false, true}) {
    const std::string name = of + (each ? ", each" : ", mean");
    table.push_back({&binary_cross_entropy, name, [=](Run& run) {
                       const Tensor x = logits(run), target = targets(run).to(x.format());
                       run(binary_cross_entropy, x, target, run.output_as(target.dtype(), each ? shape : Shape{}));
                     }});
    table.push_back({&binary_cross_entropy_backward, name, [=](Run& run) {
                       const Tensor x = logits(run), target = targets(run).to(x.format());
                       const Tensor dloss = run.parameter(each ? shape : Shape{}, 0.5, 2);
                       run(binary_cross_entropy_backward, x, target, each ? dloss.to(x.format()) : dloss,
                           run.output(shape));
                     }});
  }
}

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
  for (const Shape& shape : kBinaryShapes)
    add_binary(
        table, to_string(shape), shape, [=](Run& run) { return run.input(shape, -9, 9); },
        [=](Run& run) { return run.parameter(shape, 0, 1); });
  const auto binary = [&table](const char* name, const Shape& shape, const std::vector<float>& logits,
                               const std::vector<float>& targets) {
    add_binary(
        table, name, shape, [=](Run& run) { return run.given(shape, logits); },
        [=](Run& run) { return Tensor::from(shape, targets).to(run.parameter({}).dtype()).to(run.device()); });
  };
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  binary("certain and wrong", {4}, {-500, 90, 1000, -88}, {1, 0, 0, 1});
  binary("certain and right", {3}, {-20, 16, -12}, {0, 1, 0});  // log(1 + e) for e far below 1
  binary("certain and right, positive", {1}, {20}, {1});
  binary("infinite and right", {2}, {infinity, 0}, {0.5, 0});
  binary("NaN among the logits", {3}, {1, nan, -1}, {0, 0, 1});
  binary("NaN among the targets", {3}, {1, 0.5, -1}, {0, nan, 1});
  const std::vector<float> impossible{1, -infinity, 2, 0, 500, -400};
  for (const auto* kernel : {&softmax, &log_softmax})
    table.push_back({kernel, "an impossible class and a certain one", [=](Run& run) {
                       run(*kernel, run.given({2, 3}, impossible), run.output({2, 3}));
                     }});
  for (const bool weighted : {false, true})
    table.push_back(
        {&cross_entropy, join({"an impossible class and a certain one", weighted ? ", weighted" : ""}), [=](Run& run) {
           const Tensor x = run.given({2, 3}, impossible),
                        labels = Tensor::from<int64_t>({2}, {weighted ? 1 : 0, 1}).to(x.device());
           // The impossible class has no weight, so that its target is 0 even if smoothed.
           const Tensor weights = Tensor::from<float>({3}, {1, 0, 2}).to(parameter_dtype(x.dtype())).to(x.device());
           Tensor &loss = run.parameter_output({}), &divisor = run.output_as(DType::f64, {});
           run(cross_entropy, x, {labels, weighted ? 0.1 : 0, weighted ? weights : Tensor()}, loss, divisor,
               run.parameter_output({2, 3}));
         }});
  for (const auto& c : kCrossEntropyCases) add_cross_entropy(table, c);
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
