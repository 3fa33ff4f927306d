#include "tern/apps/advise/convergence.h"

#include <algorithm>

namespace tern::advise {
namespace {

constexpr int64_t kLocalSteps = 10;
constexpr double kFloatSteps = 233, kFloatAccuracy = 98.90;

/// A row of the grid's table: mean steps to the target, and the mean last accuracy in percent.
struct GridRow {
  TrainingMethod method;
  const char* code;  ///< the codec, or "powersgd"
  double steps, accuracy;
};

constexpr GridRow kRows[] = {
    {TrainingMethod::data_parallel, kFloats, kFloatSteps, kFloatAccuracy},
    {TrainingMethod::data_parallel, "bf16", 232, 98.88},
    {TrainingMethod::data_parallel, "ternary", 269, 98.62},
    {TrainingMethod::data_parallel, "qsgd:bits=4", 231, 98.92},
    {TrainingMethod::data_parallel, "onebit", 237, 98.86},
    {TrainingMethod::data_parallel, "hadamard:bits=2", 229, 98.88},
    {TrainingMethod::data_parallel, "powersgd", 253, 98.94},
    {TrainingMethod::data_parallel, "error-feedback:topk:ratio=0.01", 306, 98.87},
    {TrainingMethod::demo, "", 161, 98.97},
    {TrainingMethod::local_sgd, kFloats, 214, 98.96},
    {TrainingMethod::local_sgd, "hadamard:bits=2", 212, 98.94},
    {TrainingMethod::diloco, kFloats, 354, 98.37},
    {TrainingMethod::noloco, "", 199, 98.88},
    {TrainingMethod::sparseloco, traits_of(TrainingMethod::sparseloco).codec, 301, 98.82},
    {TrainingMethod::ist, kFloats, 644, 98.37},
};

}  // namespace

std::optional<Convergence> measured_convergence(const Way& way, int64_t local_steps) {
  if (way.scope != SubnetScope::fc || (!traits_of(way.method).every_step && local_steps != kLocalSteps))
    return std::nullopt;
  const std::string code = !way.takes_exchange() ? "" : way.has_power_sgd() ? way.exchange : way.codec;
  const auto row =
      std::ranges::find_if(kRows, [&](const GridRow& each) { return each.method == way.method && each.code == code; });
  if (row == std::end(kRows)) return std::nullopt;
  return Convergence{.steps = row->steps / kFloatSteps, .lost = kFloatAccuracy - row->accuracy};
}

}  // namespace tern::advise
