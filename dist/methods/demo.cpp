#include "tern/dist/methods/demo.h"

#include <cmath>
#include <numbers>

#include "tern/core/error.h"
#include "tern/dist/methods/replicas.h"
#include "tern/kernels/blocks.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/matmul.h"

namespace tern {
namespace {

constexpr int64_t kSide = 64, kRun = 64;

/// Transforms the rows of x [rows, n], in place.
void transform_rows(const Tensor& x, const Tensor& c, bool inverse) {
  Tensor y = Tensor::empty_like(x);
  kernels::matmul(x, c, {.transpose_b = !inverse}, y);
  x.copy_from(y);
}

/// Transforms the columns of x [n, columns], in place.
void transform_columns(const Tensor& x, const Tensor& c, bool inverse) {
  Tensor y = Tensor::empty_like(x);
  kernels::matmul(c, x, {.transpose_a = inverse}, y);
  x.copy_from(y);
}

/// The sign of each element, and 0 for 0: the gradient of |x|.
Tensor signs_of(const Tensor& x) {
  Tensor ones = Tensor::empty_like(x), signs = Tensor::empty_like(x);
  kernels::fill(ones, 1);
  kernels::abs_backward(x, ones, signs);
  return signs;
}

}  // namespace

const Tensor& BlockDct::cosines(int64_t n, Device device) {
  Tensor& kept = cosines_[n];
  if (kept.defined() && kept.device() == device) return kept;
  const Tensor c = Tensor::empty({n, n});
  const auto count = static_cast<double>(n);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t j = 0; j < n; ++j) {
      const double angle = std::numbers::pi * static_cast<double>((2 * j + 1) * k) / (2 * count);
      c.data<float>()[k * n + j] = static_cast<float>(std::sqrt((k == 0 ? 1 : 2) / count) * std::cos(angle));
    }
  return kept = c.to(device);
}

void BlockDct::apply(Tensor& x, bool inverse) {
  const kernels::BlockGrid grid(x.shape(), side_, run_);
  if (grid.count() == 0) return;
  const int64_t width = grid.tile_columns, rest = grid.columns % width;  // only a vector has a rest
  const int64_t whole = x.numel() - rest;
  const Tensor flat = x.reshape({x.numel()});
  transform_rows(flat.slice(0, whole).reshape({whole / width, width}), cosines(width, x.device()), inverse);
  if (rest > 0) transform_rows(flat.slice(whole, x.numel()).reshape({1, rest}), cosines(rest, x.device()), inverse);
  if (grid.tile_rows == 1) return;
  const Tensor matrix = x.reshape({grid.rows, grid.columns});
  for (int64_t row = 0; row < grid.rows; row += grid.tile_rows)
    transform_columns(matrix.slice(row, row + grid.tile_rows), cosines(grid.tile_rows, x.device()), inverse);
}

AveragingOptions DeMo::averaging(const Options& options) {
  check_input(options.keep >= 1, "demo: ", options.keep, " coefficients, expected 1 or more");
  check_input(options.decay > 0 && options.decay <= 1, "demo: a decay of ", options.decay, ", expected (0, 1]");
  return {.codec = join({"topk-block:keep=", options.keep, ",side=", kSide, ",run=", kRun,
                         ",short=full,bits=32,decay=", options.decay}),
          .exchange = "allgather-sent"};
}

DeMo::DeMo(Module& model, Optimizer& local, Communicator& communicator, const Options& options)
    : DistributedOptimizer(model, local),
      communicator_(communicator),
      options_(options),
      parameters_(model.trained_parameters()),
      dct_(kSide, kRun),
      averaging_(communicator, averaged_parameters(model, "demo"), averaging(options)) {}

void DeMo::begin_step(int64_t step) {
  step_ = step;
  averaging_.begin(step);
}

void DeMo::step() {
  check(step_.has_value(), "demo: step without begin_step");
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Tensor gradient = needed_gradient(parameters_[i], "demo", *step_);
    Tensor coefficients = Tensor::empty(gradient.shape(), {.device = gradient.device()});
    kernels::convert(gradient, coefficients);
    kernels::scale(coefficients, local_.learning_rate(), coefficients);
    dct_.transform(coefficients);
    averaging_.give(i, coefficients);
  }
  std::vector<Tensor> means = averaging_.finish();
  for (size_t i = 0; i < means.size(); ++i) {
    Parameter& parameter = *parameters_[i].parameter;
    Tensor gradient = Tensor::empty_like(parameter.value()), mean = means[i].to(gradient.device());
    dct_.restore(mean);
    kernels::convert(signs_of(mean), gradient);
    parameter.set_gradient(gradient);
  }
  local_.step();
  if (options_.check_every > 0 && *step_ % options_.check_every == 0)
    check_same_parameters(communicator_, parameters_, *step_);
  step_.reset();
}

void DeMo::consolidate() { broadcast_buffers(communicator_, model_, 0); }

}  // namespace tern
