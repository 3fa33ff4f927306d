#include "tern/apps/trainer/loaders.h"
#include "tern/apps/trainer/machine.h"
#include "tern/apps/trainer/method.h"
#include "tern/apps/trainer/trainer.h"

// What a trainer tells of its run.

namespace tern {

RunStart Trainer::describe() const {
  return {.application = name_,
          .settings = settings_,
          .training_images = resources_.data.training->size(),
          .test_images = resources_.data.test->size(),
          .steps_per_epoch = loader_->batches(),
          .total_steps = total_steps_,
          .first_step = first_step_,
          .parameters = parameters_,
          .images_per_step = images_per_rank(settings_, team_.size()) * team_.size(),
          .launcher = resources_.launcher};
}

RunReport Trainer::report() {
  const double seconds = seconds_ - first_seconds_;
  const auto images = static_cast<double>((steps_ - first_step_) * describe().images_per_step);
  RunReport whole = {.accuracy = evaluation_.accuracy(),
                     .loss = evaluation_.loss(),
                     .seconds = seconds_,
                     .steps = steps_,
                     .images_per_second = seconds > 0 ? images / seconds : 0,
                     .data_wait = seconds > 0 ? loader_->wait_seconds() / seconds : 0,
                     .peak_memory = peak_memory_bytes()};
  if (const Device device = parse_device(settings_.device); device.type != DeviceType::cpu)
    whole.peak_device_memory = device_backend(device).statistics().peak_in_use;
  if (clock_) whole.operations = clock_->times();
  if (resources_.communicator) whole.team = report_team(seconds);
  return whole;
}

Traffic Trainer::sent_in_all() const {
  const Traffic now = team_.traffic();
  return {.sent_payload = first_sent_.sent_payload + now.sent_payload,
          .sent_overhead = first_sent_.sent_overhead + now.sent_overhead};
}

TeamReport Trainer::report_team(double seconds) const {
  TeamReport report = {.traffic = sent_in_all(), .times = method_->times()};
  const auto ranks = static_cast<double>(team_.size()), steps = static_cast<double>(steps_);
  const auto payload = static_cast<double>(report.traffic.sent_payload);
  const auto overhead = static_cast<double>(report.traffic.sent_overhead);
  const std::vector<double> sent = team_.sum({payload, overhead});
  if (steps > 0) {
    report.sent_payload_mean = sent[0] / ranks / steps;
    report.sent_overhead_mean = sent[1] / ranks / steps;
  }
  report.float_ring_bytes = 8 * static_cast<double>(parameters_) * (ranks - 1) / ranks;
  if (payload + overhead > 0) report.float_ring_ratio = steps * report.float_ring_bytes / (payload + overhead);
  report.compute = seconds - report.times.total();
  return report;
}

}  // namespace tern
