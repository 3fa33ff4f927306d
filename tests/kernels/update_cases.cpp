#include <limits>
#include <utility>

#include "tern/kernels/update.h"
#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

/// Several parameters of different shapes, after `steps`, steps + 10, ... updates. Everything that the kernel changes
/// is compared.
std::vector<kernels::ParameterUpdate> updates(Run& run, double steps = 0) {
  std::vector<kernels::ParameterUpdate> all;
  const auto count = [&] {
    const Tensor number = Tensor::full({}, std::exchange(steps, steps + 10), {.dtype = DType::i64});
    return run.changed(number.to(run.device()));
  };
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{20, 1, 5, 5}, Shape{33, 65}, Shape{0}, Shape{40000}})
    all.push_back({.w = run.changed(run.parameter(shape)),
                   .g = run.parameter(shape),
                   .first = run.changed(run.parameter(shape)),
                   .second = run.changed(run.parameter(shape, 0, 1)),
                   .steps = count()});
  return all;
}

Tensor number(const Run& run, double value) {
  return Tensor::full({}, value, {.dtype = DType::f64, .device = run.device()});
}

struct SgdCase {
  const char* name;
  double lr;
  kernels::SgdSettings settings;
  double scale = 1;
  bool copies = false;
};
const SgdCase kSgdCases[] = {
    {"plain", 0.1, {}},
    {"momentum", 0.1, {.momentum = 0.9}},
    {"momentum, weight decay", 0.1, {.momentum = 0.9, .weight_decay = 5e-4}},
    {"nesterov, weight decay, clipped", 0.1, {.momentum = 0.9, .weight_decay = 5e-4, .nesterov = true}, 0.5},
    {"plain, with a copy", 0.1, {}, 1, true},
    {"nesterov, with a copy", 0.1, {.momentum = 0.9, .nesterov = true}, 1, true},
};

struct AdamCase {
  const char* name;
  double steps;  // updates of the first parameter before this one
  kernels::AdamSettings settings;
  double scale = 1;
};
const AdamCase kAdamCases[] = {
    {"first step", 0, {}},
    {"weight decay, clipped", 6, {.weight_decay = 0.1}, 0.5},
    {"decoupled", 99, {.weight_decay = 0.1, .decoupled = true}},
};

}  // namespace

void add_update_cases(ParityTable& table) {
  using namespace kernels;
  using Span = std::span<const ParameterUpdate>;
  const ParityOptions plain{.bf16 = false, .channels_last = false};
  for (const auto& c : kSgdCases)
    table.push_back({&sgd_update, c.name,
                     [=](Run& run) {
                       SgdSettings settings = c.settings;
                       settings.lr = number(run, c.lr);
                       if (c.scale != 1) settings.gradient_scale = number(run, c.scale);
                       std::vector<ParameterUpdate> all = updates(run);
                       if (c.copies)
                         for (ParameterUpdate& update : all) update.copy = run.changed(run.parameter(update.w.shape()));
                       run(sgd_update, Span(all), settings);
                     },
                     plain});
  for (const auto& c : kAdamCases)
    table.push_back({&adam_update, c.name,
                     [=](Run& run) {
                       AdamSettings settings = c.settings;
                       settings.lr = number(run, 0.01);
                       if (c.scale != 1) settings.gradient_scale = number(run, c.scale);
                       run(adam_update, Span(updates(run, c.steps)), settings);
                     },
                     plain});
  for (const bool nesterov : {false, true})
    table.push_back({&momentum_direction, nesterov ? "nesterov, clipped" : "plain",
                     [=](Run& run) {
                       MomentumSettings settings = {.momentum = 0.9, .nesterov = nesterov};
                       if (nesterov) settings.gradient_scale = number(run, 0.5);
                       run(momentum_direction, Span(updates(run)), settings);
                     },
                     plain});
  table.push_back({&set_norm, "norm 2",
                   [](Run& run) {
                     Tensor x = run.changed(run.parameter({300, 7}));
                     run(set_norm, x, number(run, 9), 2.0);
                   },
                   plain});
  table.push_back({&average_update, "decay 0.9",
                   [](Run& run) { run(average_update, Span(updates(run)), number(run, 0.9)); }, plain});
  for (const double max_norm : {0.5, 5.0})
    for (const double squared : {9.0, std::numeric_limits<double>::quiet_NaN()})
      table.push_back(
          {&clip_scale, join({"squared norm ", squared, ", at most ", max_norm}),
           [=](Run& run) { run(clip_scale, number(run, squared), max_norm, run.output_as(DType::f64, {})); }, plain});
  table.push_back({&squared_norm, "all",
                   [](Run& run) {
                     const auto all = updates(run);
                     run(squared_norm, Span(all), run.output_as(DType::f64, {}));
                   },
                   plain});
}

}  // namespace tern::test
