#include "tern/trainer/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tern/autograd/functional.h"

namespace tern {

std::string Score::text(double value) const {
  if (unit == "%") return fmt::format("{:.2f} %", 100 * value);
  return fmt::format("{:.4f}{}{}", value, unit.empty() ? "" : " ", unit);
}

bool Score::reaches(double value, double target) const {
  const double shown = value * shown_factor(), slack = 1e-9 * std::max(1.0, std::abs(target));
  return higher_is_better ? shown >= target - slack : shown <= target + slack;
}

std::string Score::key() const {
  std::string key = name;
  std::ranges::replace(key, ' ', '_');
  return key;
}

void check_scores(const std::vector<Score>& scores) {
  check(!scores.empty(), "the task has no scores, expected one or more");
  std::set<std::string> taken = {"event", "step",    "epoch",     "loss",        "lr",
                                 "steps", "seconds", "data_wait", "peak_memory", "operations"};
  taken.insert({"peak_device_memory", "largest_peak_memory", "reached_target"});
  taken.insert({"bytes_sent_payload", "bytes_sent_overhead"});
  taken.insert({"bytes_ratio_float_ring", "compute_seconds", "encode_seconds", "wait_seconds", "decode_seconds"});
  for (const Score& score : scores)
    check(!score.name.empty() && taken.insert(score.key()).second, "the task has a score '", score.name,
          "', expected names that differ from each other and from the log's own");
}

Variable DeviceBatch::input(std::string_view name, std::optional<DType> dtype) const {
  const Tensor& tensor = on_device_[name];
  if (!is_floating(tensor.dtype()))
    fail_input({sample_name(0), ": field '", name, "' has elements of ", tensor.dtype(),
                ", expected f32 or f64 as input of the model"});
  return convert(Variable(tensor), dtype.value_or(precision_));
}

std::string DeviceBatch::sample_name(int64_t row) const {
  return join({"data set '", data_, "', sample ", on_cpu_.indices().span<int64_t>()[static_cast<size_t>(row)]});
}

std::vector<Tensor> Forward::values() const {
  std::vector<Tensor> values;
  for (const Variable& output : outputs) values.push_back(output.value());
  return values;
}

void Task::predict(Module&, const TrainSettings&, const std::function<void(const std::string&)>&) const {
  fail({"this task has no --predict"});
}

}  // namespace tern
