#include "tern/kernels/normalization.h"

#include <limits>

#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

struct BatchNormCase {
  Shape x;
  bool relu = false, residual = false;
};
const BatchNormCase kBatchNormCases[] = {
    {{8, 5}},
    {{33, 65}, true},
    {{2, 1}},
    {{2, 8, 5, 7}},
    {{2, 16, 8, 8}, true},
    {{3, 13, 3, 5}, true, true},
    {{4, 64, 4, 4}, false, true},
    {{1, 3, 2, 1}},
    {{16, 24, 16, 16}, true},
    {{2, 12, 3, 3}, true, true},
    {{3, 16, 5, 5}, true},
    {{2, 3, 2, 6}, true},
    {{2, 3, 14, 14}, true, true},
};

struct LocalResponseNormCase {
  Shape x;
  kernels::LocalResponseNormOptions options = {};
};
const LocalResponseNormCase kLocalResponseNormCases[] = {
    {{2, 8, 5, 7}, {.alpha = 1}},
    {{2, 3, 4, 4}, {.alpha = 1}},
    {{1, 17, 3, 3}, {.size = 3, .alpha = 0.5, .beta = 0.5}},
    {{2, 10, 3, 3}, {.size = 4, .alpha = 1, .k = 2}},
    {{2, 16, 3, 3}, {.size = 4, .alpha = 1, .k = 2}},
    {{2, 96, 3, 3}, {.alpha = 1e-4, .k = 2}},
    {{1, 1, 2, 2}, {.size = 1, .alpha = 1}},
};

kernels::BatchNormParameters batch_norm_parameters(Run& run, int64_t channels) {
  return {.gamma = run.parameter({channels}, 0.5, 1.5),
          .beta = run.parameter({channels}),
          .running_mean = run.parameter({channels}),
          .running_variance = run.parameter({channels}, 0.5, 2)};
}

/// The bits of y on the device of the run.
Tensor passed_of(Run& run, const Tensor& y) {
  Tensor passed = Tensor::empty({kernels::passed_bytes(y.numel())}, {.dtype = DType::u8});
  kernels::store_passed(y.to(Device{}), passed);
  return passed.to(run.device());
}

kernels::BatchNormSaved batch_norm_saved(Run& run, const Tensor& x, const Tensor& y) {
  const Shape channels{x.size(1)};
  return {.x = x,
          .y = y,
          .passed = y.defined() ? passed_of(run, y) : Tensor(),
          .gamma = run.parameter(channels, 0.5, 1.5),
          .mean = run.parameter(channels, 1, 2),
          .inverse_deviation = run.parameter(channels, 0.5, 2)};
}

void add_batch_norm_case(ParityTable& table, const BatchNormCase& c) {
  using namespace kernels;
  const std::string name = to_string(c.x) + (c.relu ? " relu" : "") + (c.residual ? " residual" : "");
  const Shape channels{c.x[1]};
  table.push_back({&batch_norm_training, name, [=](Run& run) {
                     const Tensor x = run.input(c.x, 0, 3), residual = c.residual ? run.input(c.x) : Tensor();
                     BatchNormParameters parameters = batch_norm_parameters(run, c.x[1]);
                     Tensor& y = run.output(c.x);
                     Tensor none;
                     Tensor& passed = c.relu ? run.output_as(DType::u8, {passed_bytes(c.x.numel())}) : none;
                     Tensor& mean = run.parameter_output(channels);
                     Tensor& inverse_deviation = run.parameter_output(channels);
                     run.changed(parameters.running_mean);
                     run.changed(parameters.running_variance);
                     run(batch_norm_training, x, residual, parameters, {.relu = c.relu}, y, passed, mean,
                         inverse_deviation);
                   }});
  table.push_back({&batch_norm_inference, name, [=](Run& run) {
                     const Tensor x = run.input(c.x, 0, 3), residual = c.residual ? run.input(c.x) : Tensor();
                     const BatchNormParameters parameters = batch_norm_parameters(run, c.x[1]);
                     run(batch_norm_inference, x, residual, parameters, {.relu = c.relu}, run.output(c.x));
                   }});
  table.push_back({&batch_norm_backward, name, [=](Run& run) {
                     const Tensor dy = run.input(c.x, -1, 2);
                     const Tensor x = run.input(c.x, 0, 3), y = c.relu ? run.input(c.x) : Tensor();
                     const BatchNormSaved saved = batch_norm_saved(run, x, y);
                     Tensor& dx = run.output(c.x);
                     Tensor& dgamma = run.parameter_output(channels);
                     Tensor& dbeta = run.parameter_output(channels);
                     Tensor none;
                     run(batch_norm_backward, dy, saved, c.relu, dx, dgamma, dbeta,
                         c.residual ? run.output(c.x) : none);
                   }});
}

}  // namespace

void add_normalization_cases(ParityTable& table) {
  using namespace kernels;
  table.push_back({&batch_norm_inference, "NaN passes the relu", [](Run& run) {
                     const float nan = std::numeric_limits<float>::quiet_NaN();
                     const Tensor x = run.given({9, 1}, {nan, 1, -1, 2, -2, 3, -3, 4, nan});
                     const BatchNormParameters parameters = batch_norm_parameters(run, 1);
                     run(batch_norm_inference, x, {}, parameters, {.relu = true}, run.output({9, 1}));
                   }});
  table.push_back({&batch_norm_training, "NaN passes the relu", [](Run& run) {
                     const float nan = std::numeric_limits<float>::quiet_NaN();
                     const Tensor x = run.given({9, 2}, {nan, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9});
                     BatchNormParameters parameters = batch_norm_parameters(run, 2);
                     run(batch_norm_training, x, {}, parameters, {.relu = true}, run.output({9, 2}),
                         run.output_as(DType::u8, {3}), run.parameter_output({2}), run.parameter_output({2}));
                   }});
  table.push_back(
      {&batch_norm_inference, "no images", [](Run& run) {
         const BatchNormParameters parameters = batch_norm_parameters(run, 3);
         run(batch_norm_inference, run.input({0, 3, 2, 2}), {}, parameters, {.relu = true}, run.output({0, 3, 2, 2}));
       }});
  for (const bool residual : {false, true})
    table.push_back(
        {&batch_norm_backward, residual ? "NaN passes the gradient, residual" : "NaN passes the gradient",
         [=](Run& run) {
           const float nan = std::numeric_limits<float>::quiet_NaN();
           const Tensor x = run.input({9, 1}), y = run.given({9, 1}, {nan, 1, 0, 2, 0, 3, 0, 4, nan});
           const BatchNormSaved saved = batch_norm_saved(run, x, y);
           const Tensor dy = run.input({9, 1}, 1, 2);
           Tensor& dx = run.output({9, 1});
           Tensor &dgamma = run.parameter_output({1}), &dbeta = run.parameter_output({1});
           Tensor none;
           run(batch_norm_backward, dy, saved, true, dx, dgamma, dbeta, residual ? run.output({9, 1}) : none);
         }});
  for (const auto& c : kBatchNormCases) add_batch_norm_case(table, c);
  for (const auto& c : kLocalResponseNormCases) {
    const std::string name = to_string(c.x) + " size " + std::to_string(c.options.size);
    table.push_back({&local_response_norm, name, [=](Run& run) {
                       const Tensor x = run.input(c.x, -2, 2);
                       run(local_response_norm, x, c.options, run.output(c.x), run.output(c.x));
                     }});
    table.push_back({&local_response_norm_backward, name, [=](Run& run) {
                       const Tensor dy = run.input(c.x), x = run.input(c.x, -2, 2), denominator = run.input(c.x, 1, 3);
                       run(local_response_norm_backward, dy, x, denominator, c.options, run.output(c.x));
                     }});
  }
  for (const int64_t columns : {768, 16384})
    table.push_back({&layer_norm, "constant rows of " + std::to_string(columns), [=](Run& run) {
                       const Tensor x = run.given({2, columns}, std::vector<float>(size_t(2 * columns), 100.1f));
                       const Tensor gamma = run.parameter({columns}, 0.5, 1.5), beta = run.parameter({columns});
                       run(layer_norm, x, gamma, beta, 1e-5, run.output({2, columns}), run.parameter_output({2}),
                           run.parameter_output({2}));
                     }});
  for (const Shape& shape : {Shape{1, 1}, {3, 7}, {70, 33}, {5, 1024}, {200, 64}, {0, 4}}) {
    const Shape rows{shape[0]}, columns{shape[1]};
    const std::string name = to_string(shape);
    table.push_back({&layer_norm, name, [=](Run& run) {
                       const Tensor x = run.input(shape, 0, 3), gamma = run.parameter(columns, 0.5, 1.5),
                                    beta = run.parameter(columns);
                       run(layer_norm, x, gamma, beta, 1e-5, run.output(shape), run.parameter_output(rows),
                           run.parameter_output(rows));
                     }});
    table.push_back({&layer_norm_backward, name, [=](Run& run) {
                       const Tensor dy = run.input(shape, -1, 2);
                       const LayerNormSaved saved{run.input(shape, 0, 3), run.parameter(columns, 0.5, 1.5),
                                                  run.parameter(rows, 1, 2), run.parameter(rows, 0.5, 2)};
                       run(layer_norm_backward, dy, saved, run.output(shape), run.parameter_output(columns),
                           run.parameter_output(columns));
                     }});
  }
}

}  // namespace tern::test
