#include "tern/apps/advise/convergence.h"

#include <algorithm>

namespace tern::advise {
namespace {

constexpr int64_t kLocalSteps = 10;
constexpr double kFloatSteps = 227, kFloatAccuracy = 98.90;

/// A row of the grid's table: mean steps to the target, and the mean last accuracy in percent.
struct GridRow {
  TrainingMethod method;
  const char* code;  ///< the codec, or "powersgd"
  double steps, accuracy;
};

constexpr GridRow kRows[] = {
    {TrainingMethod::data_parallel, kFloats, kFloatSteps, kFloatAccuracy},
    {TrainingMethod::data_parallel, "bf16", 226, 98.99},
    {TrainingMethod::data_parallel, "ternary", 263, 98.71},
    {TrainingMethod::data_parallel, "qsgd:bits=4", 224, 98.86},
    {TrainingMethod::data_parallel, "onebit", 235, 98.81},
    {TrainingMethod::data_parallel, "hadamard:bits=2", 220, 98.91},
    {TrainingMethod::data_parallel, "powersgd", 228, 98.89},
    {TrainingMethod::data_parallel, "error-feedback:topk:ratio=0.01", 304, 98.82},
    {TrainingMethod::demo, "", 157, 98.78},
    {TrainingMethod::local_sgd, kFloats, 215, 98.93},
    {TrainingMethod::local_sgd, "hadamard:bits=2", 225, 98.92},
    {TrainingMethod::diloco, kFloats, 277, 98.54},
    {TrainingMethod::noloco, "", 193, 98.84},
    {TrainingMethod::sparseloco, kSparseLoCoCodec, 305, 98.74},
    {TrainingMethod::ist, kFloats, 629, 98.51},
};

}  // namespace

std::optional<Convergence> measured_convergence(const Way& way, int64_t local_steps) {
  if (way.scope != SubnetScope::fc || (!exchanges_every_step(way.method) && local_steps != kLocalSteps))
    return std::nullopt;
  const std::string code = !way.takes_exchange() ? "" : way.has_power_sgd() ? way.exchange : way.codec;
  const auto row =
      std::ranges::find_if(kRows, [&](const GridRow& each) { return each.method == way.method && each.code == code; });
  if (row == std::end(kRows)) return std::nullopt;
  return Convergence{.steps = row->steps / kFloatSteps, .lost = kFloatAccuracy - row->accuracy};
}

}  // namespace tern::advise
