#include "tern/apps/advise/convergence.h"

#include <algorithm>
#include <limits>
#include <span>

namespace tern::advise {
namespace {

/// A row of a grid's table: mean steps to the target, and the mean last accuracy in percent.
struct GridRow {
  TrainingMethod method;
  const char* code;  ///< the codec, or "powersgd"
  double steps, accuracy;
};

constexpr double kNever = std::numeric_limits<double>::infinity();
const char* const kSparseLoCoCode = traits_of(TrainingMethod::sparseloco).codec;

/// The first row is that of floats.
const GridRow kLeNet[] = {
    {TrainingMethod::data_parallel, kFloats, 233, 98.90},
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
    {TrainingMethod::sparseloco, kSparseLoCoCode, 301, 98.82},
    {TrainingMethod::ist, kFloats, 644, 98.37},
};
const GridRow kAirbench[] = {
    {TrainingMethod::data_parallel, kFloats, 156, 93.92},
    {TrainingMethod::data_parallel, "bf16", 158, 93.95},
    {TrainingMethod::data_parallel, "ternary", 195, 92.20},
    {TrainingMethod::data_parallel, "qsgd:bits=4", 158, 93.84},
    {TrainingMethod::data_parallel, "onebit", 161, 93.65},
    {TrainingMethod::data_parallel, "hadamard:bits=2", 172, 93.33},
    {TrainingMethod::data_parallel, "powersgd", kNever, 76.07},
    {TrainingMethod::data_parallel, "error-feedback:topk:ratio=0.01", kNever, 91.96},
    {TrainingMethod::demo, "", kNever, 78.49},
    {TrainingMethod::local_sgd, kFloats, 184, 92.33},
    {TrainingMethod::local_sgd, "hadamard:bits=2", 187, 92.40},
    {TrainingMethod::diloco, kFloats, kNever, 86.66},
    {TrainingMethod::noloco, "", kNever, 90.99},
    {TrainingMethod::sparseloco, kSparseLoCoCode, kNever, 69.54},
};

struct Grid {
  const char *network, *task;
  int64_t local_steps;
  std::span<const GridRow> rows;
};
const Grid kGrids[] = {{"lenet", "LeNet on MNIST", 10, kLeNet}, {"airbench", "airbench94 on CIFAR-10", 20, kAirbench}};

const Grid* grid_of(std::string_view network) {
  const auto found = std::ranges::find(kGrids, network, &Grid::network);
  return found == std::end(kGrids) ? nullptr : found;
}

}  // namespace

std::string measured_task(std::string_view network) {
  const Grid* const grid = grid_of(network);
  return grid ? grid->task : "";
}

std::optional<Convergence> measured_convergence(std::string_view network, const Way& way, int64_t local_steps) {
  const Grid* const grid = grid_of(network);
  if (!grid || way.scope != SubnetScope::fc) return std::nullopt;
  if (!traits_of(way.method).every_step && local_steps != grid->local_steps) return std::nullopt;
  const std::string code = !way.takes_exchange() ? "" : way.has_power_sgd() ? way.exchange : way.codec;
  const auto row = std::ranges::find_if(
      grid->rows, [&](const GridRow& each) { return each.method == way.method && each.code == code; });
  if (row == grid->rows.end()) return std::nullopt;
  const GridRow& floats = grid->rows.front();
  return Convergence{.steps = row->steps / floats.steps, .lost = floats.accuracy - row->accuracy};
}

}  // namespace tern::advise
