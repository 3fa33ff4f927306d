#include "tern/kernels/update.h"
#include "tests/kernels/parity_cases.h"

namespace tern::test {
namespace {

/// Parameters of several shapes at once; w and both states are compared.
std::vector<kernels::ParameterUpdate> updates(Run& run) {
  std::vector<kernels::ParameterUpdate> all;
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{20, 1, 5, 5}, Shape{33, 65}, Shape{0}, Shape{40000}})
    all.push_back({.w = run.changed(run.parameter(shape)),
                   .g = run.parameter(shape),
                   .first = run.changed(run.parameter(shape)),
                   .second = run.changed(run.parameter(shape, 0, 1))});
  return all;
}

struct SgdCase {
  const char* name;
  kernels::SgdSettings settings;
};
const SgdCase kSgdCases[] = {
    {"plain", {.lr = 0.1}},
    {"momentum", {.lr = 0.1, .momentum = 0.9}},
    {"momentum, weight decay", {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4}},
    {"nesterov, weight decay, clipped",
     {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true, .gradient_scale = 0.5}},
};

struct AdamCase {
  const char* name;
  kernels::AdamSettings settings;
};
const AdamCase kAdamCases[] = {
    {"first step", {.lr = 0.01}},
    {"weight decay, clipped", {.lr = 0.01, .weight_decay = 0.1, .gradient_scale = 0.5, .step = 7}},
    {"decoupled", {.lr = 0.01, .weight_decay = 0.1, .decoupled = true, .step = 100}},
};

}  // namespace

void add_update_cases(ParityTable& table) {
  using namespace kernels;
  using Span = std::span<const ParameterUpdate>;
  const ParityOptions plain{.bf16 = false, .channels_last = false};
  for (const auto& c : kSgdCases)
    table.push_back({&sgd_update, c.name, [=](Run& run) { run(sgd_update, Span(updates(run)), c.settings); }, plain});
  for (const auto& c : kAdamCases)
    table.push_back({&adam_update, c.name, [=](Run& run) { run(adam_update, Span(updates(run)), c.settings); }, plain});
  table.push_back(
      {&average_update, "decay 0.9", [](Run& run) { run(average_update, Span(updates(run)), 0.9); }, plain});
  table.push_back({&squared_norm, "all",
                   [](Run& run) {
                     const auto all = updates(run);
                     run(squared_norm, Span(all), run.output_as(DType::f64, {}));
                   },
                   plain});
}

}  // namespace tern::test
