#include <algorithm>
#include <limits>
#include <utility>

#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/matmul.h"
#include "tern/kernels/softmax_chunk.h"

namespace tern {
namespace {

struct LinearCrossEntropy {
  Saved labels, offsets;
  LinearCrossEntropyOptions options;
  std::shared_ptr<GradientSlot> weight_leaf;  // may take the gradient by rows
  Saved x = {}, weight = {}, logsumexp = {};

  static std::string name() { return "linear_cross_entropy"; }
  kernels::Bags bags() const { return {.indices = labels, .offsets = offsets, .values = {}}; }

  std::array<Tensor, 2> forward(const Tensor& input, const Tensor& matrix) {
    check_inputs(input, matrix);
    const DType wide = parameter_dtype(input.dtype());
    const int64_t rows = input.size(0), places = std::max<int64_t>(options.top, 1);
    const auto full = [&](const Shape& shape, double value, DType dtype) {
      return filled(shape, value, {.dtype = dtype, .device = input.device()});
    };
    constexpr double kLeast = -std::numeric_limits<double>::infinity();
    Tensor maximum = full({rows}, kLeast, wide), sum = full({rows}, 0, wide), hits = full({rows}, 0, wide);
    Tensor values = full({rows, places}, kLeast, wide),
           top = Tensor::full({rows, places}, -1, {.dtype = DType::i64}).to(input.device());
    for_each_chunk(input, matrix, [&](int64_t first, const Tensor&, Tensor& logits) {
      if (options.complete) options.complete(logits);
      kernels::softmax_chunk(logits, bags(), first, maximum, sum, hits);
      if (options.top > 0) kernels::top_classes(logits, first, values, top);
    });
    Tensor log_sums = Tensor::empty_like(maximum), loss = Tensor::empty({}, maximum.options());
    kernels::softmax_chunk_loss(maximum, sum, hits, bags(), log_sums, loss);
    x = input;
    weight = matrix;
    logsumexp = log_sums;
    return {loss, top};
  }

  Gradients backward(const Gradients& dys, const Needs& needs) const {
    const Tensor &input = x.get(), &matrix = weight.get(), &log_sums = logsumexp.get(), &dloss = dys[0];
    const bool by_rows = needs[1] && weight_leaf && weight_leaf->takes_rows();
    Gradients gradients(2);
    const DType wide = parameter_dtype(input.dtype());
    if (needs[0]) gradients[0] = filled(input.shape(), 0, {.dtype = wide, .device = input.device()});
    if (needs[1] && !by_rows) gradients[1] = Tensor::empty_like(matrix);
    for_each_chunk(input, matrix, [&](int64_t first, const Tensor& rows, Tensor& logits) {
      kernels::softmax_chunk_backward(log_sums, bags(), first, dloss, logits, logits);
      if (needs[0]) {
        Tensor part = Tensor::empty_like(input);
        kernels::linear_backward_data(logits, rows, part);
        kernels::accumulate(converted(part, wide), gradients[0]);
      }
      if (!needs[1]) return;
      Tensor block = by_rows ? Tensor::empty_like(rows) : gradients[1].slice(first, first + rows.size(0)), no_bias;
      kernels::linear_backward_weights(logits, input, block, no_bias);
      if (by_rows) weight_leaf->take_rows(first, block);  // may write to `rows`: from here on nobody reads them
    });
    if (by_rows) weight_leaf->gave_all_rows();
    if (needs[0]) gradients[0] = converted(gradients[0], input.dtype());
    return gradients;
  }

 private:
  /// Calls visit(first class, rows of the matrix, logits) for each chunk of classes.
  template <class Visit>
  void for_each_chunk(const Tensor& input, const Tensor& matrix, const Visit& visit) const {
    for (int64_t first = 0; first < matrix.size(0); first += options.chunk) {
      const Tensor rows = matrix.slice(first, std::min(first + options.chunk, matrix.size(0)));
      Tensor logits = Tensor::empty({input.size(0), rows.size(0)}, input.options());
      kernels::linear(input, rows, {}, false, logits);
      visit(first, rows, logits);
    }
  }

  static Tensor converted(const Tensor& tensor, DType dtype) {
    if (tensor.dtype() == dtype) return tensor;
    Tensor other = Tensor::empty(tensor.shape(), {.dtype = dtype, .device = tensor.device()});
    kernels::convert(tensor, other);
    return other;
  }

  void check_inputs(const Tensor& input, const Tensor& matrix) const {
    kernels::linear_output_shape(input.shape(), matrix.shape());
    check(input.rank() == 2 && input.size(0) > 0 && matrix.size(0) > 0, "linear_cross_entropy: input of shape ",
          input.shape(), ", weight of shape ", matrix.shape(), ", expected one row and one class or more");
    check(matrix.dtype() == parameter_dtype(input.dtype()), "linear_cross_entropy: weight is ", matrix.dtype(),
          " beside input of ", input.dtype(), ", expected ", parameter_dtype(input.dtype()));
    check(labels.dtype() == DType::i64 && labels.rank() == 1 && offsets.dtype() == DType::i64 &&
              offsets.shape() == Shape{input.size(0) + 1},
          "linear_cross_entropy: labels ", labels.dtype(), " of shape ", labels.shape(), ", offsets ", offsets.dtype(),
          " of shape ", offsets.shape(), ", expected i64 [labels] and i64 [", input.size(0) + 1, "]");
    check(options.chunk >= 1 && options.top >= 0, "linear_cross_entropy: chunks of ", options.chunk,
          " classes and the best ", options.top, ", expected 1 or more and 0 or more");
    const Device device = input.device(), labels_on = labels.options().device, offsets_on = offsets.options().device;
    check(matrix.device() == device && labels_on == device && offsets_on == device, "linear_cross_entropy: labels on ",
          labels_on, ", offsets on ", offsets_on, ", weight on ", matrix.device(), ", input on ", device,
          ", expected one device");
    if (device == Device{}) kernels::check_bag_elements("linear_cross_entropy", bags(), matrix.size(0));
  }
};

}  // namespace

LinearCrossEntropyOutput linear_cross_entropy(const Variable& x, const Variable& weight, const Tensor& labels,
                                              const Tensor& offsets, const LinearCrossEntropyOptions& options) {
  std::optional<NoGradient> no_gradient;
  if (options.complete) no_gradient.emplace();
  const auto& slot = weight.slot();
  const auto [loss, top] = apply(LinearCrossEntropy{.labels = labels,
                                                    .offsets = offsets,
                                                    .options = options,
                                                    .weight_leaf = slot && !slot->producer ? slot : nullptr},
                                 x, weight);
  return {.loss = loss, .top = options.top > 0 ? top.value() : Tensor()};
}

}  // namespace tern
