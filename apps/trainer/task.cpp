#include "tern/trainer/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/autograd/functional.h"

namespace tern {

std::string Score::text(double value) const {
  if (unit == "%") return fmt::format("{:.2f} %", 100 * value);
  return fmt::format("{:.4f}{}{}", value, unit.empty() ? "" : " ", unit);
}

std::string Score::key() const {
  std::string key = name;
  std::ranges::replace(key, ' ', '_');
  return key;
}

Variable DeviceBatch::input(std::string_view name) const { return convert(Variable(on_device_[name]), precision_); }

std::vector<Tensor> Forward::values() const {
  std::vector<Tensor> values;
  for (const Variable& output : outputs) values.push_back(output.value());
  return values;
}

std::string Task::predict(Module&, const TrainSettings&) const { fail({"this task has no --predict"}); }

}  // namespace tern
