#include "tern/dist/methods/demo.h"

#include "tern/core/error.h"
#include "tern/dist/methods/replicas.h"
#include "tern/dist/methods/tensors.h"
#include "tern/kernels/block_dct.h"

namespace tern {
namespace {

constexpr int64_t kSide = 64, kRun = 64;

}  // namespace

void BlockDct::transform(const Tensor& x, double scale, Tensor& y) {
  apply(x, {.side = side_, .run = run_, .scale = scale}, y);
}

void BlockDct::restore(Tensor& x) { apply(x, {.side = side_, .run = run_, .inverse = true}, x); }

void BlockDct::restore_signs(Tensor& x) { apply(x, {.side = side_, .run = run_, .inverse = true, .sign = true}, x); }

const Tensor& BlockDct::cosines(int64_t n, Device device) {
  Tensor& kept = cosines_[n];
  if (!kept.defined() || kept.device() != device) kept = kernels::cosines(n).to(device);
  return kept;
}

void BlockDct::apply(const Tensor& x, const kernels::BlockDctOptions& options, Tensor& y) {
  const kernels::BlockGrid grid(x.shape(), options.side, options.run);
  kernels::BlockCosines of_blocks;
  if (x.numel() != 0) of_blocks = {cosines(grid.tile_rows, x.device()), cosines(grid.tile_columns, x.device()), {}};
  if (const int64_t rest = kernels::rest_of(grid); rest > 0) of_blocks.of_rest = cosines(rest, x.device());
  kernels::block_dct(x, of_blocks, options, y);
}

AveragingOptions DeMo::averaging(const Options& options) {
  check_input(options.keep >= 1 && options.keep <= kSide * kSide, "demo: ", options.keep,
              " coefficients, expected 1 to ", kSide * kSide, ", as many as a block has");
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
      averaging_(communicator, averaged_parameters(model, "demo"), averaging(options)) {
  const StateDict state = local.state();  // each rule but that of Sgd without momentum has some
  check_input(state.size() == 0, "demo: the local optimizer keeps '", state.size() == 0 ? "" : state.begin()->first,
              "', expected an Sgd without momentum, because demo has a momentum of its own");
}

void DeMo::begin_step(int64_t step) {
  step_ = step;
  averaging_.begin(step);
}

void DeMo::step() {
  check(step_.has_value(), "demo: step without begin_step");
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Tensor gradient = needed_gradient(parameters_[i], "demo", *step_);
    Tensor coefficients = Tensor::empty(gradient.shape(), {.device = gradient.device()});
    dct_.transform(laid_out_as(coefficients, gradient), local_.learning_rate(), coefficients);
    averaging_.give(i, coefficients);
  }
  std::vector<Tensor> means = averaging_.finish();
  for (size_t i = 0; i < means.size(); ++i) {
    Parameter& parameter = *parameters_[i].parameter;
    Tensor mean = means[i].to(parameter.value().device());
    dct_.restore_signs(mean);
    parameter.set_gradient(mean);
  }
  local_.step();
  if (options_.check_every > 0 && *step_ % options_.check_every == 0)
    check_same_parameters(communicator_, parameters_, *step_);
  step_.reset();
}

void DeMo::consolidate() { broadcast_buffers(communicator_, model_, 0); }

}  // namespace tern
