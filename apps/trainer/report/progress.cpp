#include "tern/trainer/report/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tern/core/device.h"
#include "tern/dist/comm/mpi.h"
#include "tern/dist/comm/nccl.h"
#include "tern/kernels/libraries.h"
#include "tern/trainer/rank/machine.h"

namespace tern::trainer {
namespace {

constexpr std::chrono::milliseconds kLiveInterval{100};
constexpr std::chrono::seconds kPlainInterval{5};

/// "4 workers (processes), data-parallel, codec ternary; torchrun (RANK, WORLD_SIZE), rank 0 at 10.0.0.1:29500"
std::string workers_line(const RunStart& run) {
  const TrainSettings& s = run.settings;
  std::string ranks = s.transport.value_or(RankTransport::inproc) == RankTransport::inproc ? "threads" : "processes";
  if (s.transport == RankTransport::nccl) ranks += ", NCCL " + nccl_version();
  if (s.transport == RankTransport::mpi) ranks += ", " + mpi_version();
  if (s.wire == Wire::plain) ranks += "; plain wire: nobody notices who reads or changes their bytes";
  return fmt::format("{} worker{} ({}), {}, codec {}{}{}", *s.workers, *s.workers == 1 ? "" : "s", ranks,
                     to_string(s.method), s.method == TrainingMethod::demo ? "its own" : s.codec,
                     run.launcher.empty() ? "" : "; ", run.launcher);
}

/// ", batch 64", or ", batch 64 (16 a worker, 128 an update)" with workers or --accumulate; empty without training.
std::string batch_text(const RunStart& run) {
  const TrainSettings& s = run.settings;
  if (run.samples_per_step == 0) return "";
  const int64_t batch = run.samples_per_step / s.accumulate, workers = s.workers.value_or(1);
  if (!s.workers && s.accumulate == 1) return fmt::format(", batch {}", grouped(batch));
  const bool share_updates = traits_of(s.method).every_step;
  return fmt::format(", batch {} ({} a worker, {} an update)", grouped(batch), grouped(batch / workers),
                     grouped(share_updates ? run.samples_per_step : run.samples_per_step / workers));
}

/// ", computing on cuda:0 (NVIDIA H200)"; empty for the CPU.
std::string device_text(const std::string& name) {
  const Device device = parse_device(name);
  if (device.type == DeviceType::cpu) return "";
  return fmt::format(", computing on {} ({})", to_string(device), device_backend(device).name());
}

/// "8 s", "3 min 20 s", "2 h 05 min"
std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

void Progress::started(const RunStart& run) {
  run_ = run;
  // mpirun gives rank 0 a terminal, and mixes the lines of all ranks, perhaps in a file.
  redraws_ = out_.is_terminal() && run.settings.transport != RankTransport::mpi;
  shown_step_ = run.first_step;
  shown_at_ = Clock::now();
  const TrainSettings& s = run.settings;
  const std::string training = run.training_samples > 0 ? grouped(run.training_samples) + " training and " : "";
  print_line(fmt::format("{}: {} ({}{} test {}), {} parameters, {}{}, {} thread{} on {}{}", run.application, s.data,
                         training, grouped(run.test_samples), run.noun, grouped(run.parameters), to_string(s.precision),
                         batch_text(run), s.threads, s.threads == 1 ? "" : "s", processor_name(),
                         device_text(s.device)));
  if (s.precision == Precision::bf16 && s.device == kCpu && !kernels::has_bf16_products())
    print_line("note: this processor has neither AVX512-BF16 nor AMX: bf16 is slower on it than fp32");
  if (s.workers) print_line(workers_line(run));
  if (run.first_step > 0) print_line(fmt::format("going on after step {}", run.first_step));
}

void Progress::stepped(const StepReport& report) {
  const auto now = Clock::now();
  if (report.step == run_.first_step + 1) {  // this step also fills caches, so leave it out of the rate
    shown_step_ = report.step;
    shown_seconds_ = report.seconds;
  }
  const auto interval = redraws_ ? Clock::duration(kLiveInterval) : Clock::duration(kPlainInterval);
  if (!report.is_newest || now - shown_at_ < interval) return;
  const std::string line = step_line(report);
  shown_at_ = now;
  if (!redraws_) return print_line(line);
  // Turn off line wrapping, so that a narrow terminal cuts the line instead of scrolling.
  out_.show(fmt::format("\r\x1b[?7l{}\x1b[K\x1b[?7h", line));
  line_open_ = true;
}

void Progress::evaluated(const EvaluationReport& report) {
  if (report.step == 0) return;
  std::string scores;
  for (size_t i = 0; i < report.scores.size(); ++i)
    scores += fmt::format("  test {} {}", run_.scores[i].name, run_.scores[i].text(report.scores[i]));
  print_line(fmt::format("epoch {}  step {}{}  test loss {:.4f}", report.epoch, report.step, scores, report.loss));
}

void Progress::ended(const RunReport& report) {
  print_line("");
  size_t width = 13;  // of "peak memory" and others below, with a gap
  for (const Score& score : run_.scores) width = std::max(width, score.name.size() + 1);
  for (size_t i = 0; i < report.scores.size(); ++i)
    print_line(fmt::format("{:<{}} {}", run_.scores[i].name, width, run_.scores[i].text(report.scores[i])));
  print_line(fmt::format("{:<{}} {:.4f}", "loss", width, report.loss));
  if (const auto& target = run_.settings.target_score)
    print_line(fmt::format("{:<{}} {} {}", "target", width,
                           run_.scores[0].text(*target / run_.scores[0].shown_factor()),
                           report.reached_target ? "reached" : "not reached"));
  if (report.steps > 0)
    print_line(fmt::format("training      {} steps in {:.1f} s", grouped(report.steps), report.seconds));
  if (report.samples_per_second > 0)
    print_line(fmt::format("throughput    {} {}/s", grouped(std::llround(report.samples_per_second)), run_.noun));
  if (report.team) print_team(*report.team);
  print_line(fmt::format("parameters    {}", grouped(run_.parameters)));
  std::string memory = fmt::format("peak memory   {} MiB", grouped(report.peak_memory >> 20));
  if (report.team && report.team->peak_memory >> 20 > report.peak_memory >> 20)
    memory += fmt::format(", the largest of all ranks {} MiB", grouped(report.team->peak_memory >> 20));
  print_line(memory);
  if (report.peak_device_memory)
    print_line(
        fmt::format("              {} MiB on {}", grouped(*report.peak_device_memory >> 20), run_.settings.device));
  if (!report.operations.empty()) print_operations(report.operations);
}

void Progress::print_operations(const std::vector<OperationTime>& operations) {
  double whole = 0;
  for (const auto& operation : operations) whole += operation.seconds;
  print_line(fmt::format("\n{:30} {:>10} {:>10} {:>10} {:>7}", "operation", "calls", "total s", "each us", "share"));
  for (const auto& [name, calls, seconds] : operations)
    print_line(fmt::format("{:30} {:>10} {:>10.3f} {:>10.1f} {:>5.1f} %", name, grouped(calls), seconds,
                           1e6 * seconds / static_cast<double>(calls), whole > 0 ? 100 * seconds / whole : 0));
}

void Progress::print_team(const TeamReport& team) {
  const auto bytes = [](double count) { return grouped(std::llround(count)); };
  print_line(fmt::format("bytes sent    {} payload, {} overhead per rank and step", bytes(team.sent_payload_mean),
                         bytes(team.sent_overhead_mean)));
  if (team.float_ring_ratio > 0) {
    const double sent = team.sent_payload_mean + team.sent_overhead_mean;
    const double mean_ratio = team.float_ring_bytes / sent;
    const bool alike = std::abs(mean_ratio - team.float_ring_ratio) < 0.01 * mean_ratio;
    print_line(fmt::format("float32 ring  {:.2f} times as many bytes{}", mean_ratio,
                           alike ? "" : fmt::format(" ({:.2f} times those of rank 0)", team.float_ring_ratio)));
  }
  const double whole = team.compute + team.times.total();
  const auto share = [whole](double seconds) { return whole > 0 ? 100 * seconds / whole : 0; };
  print_line(fmt::format("time          compute {:.1f} %, encode {:.1f} %, wait {:.1f} %, decode {:.1f} %",
                         share(team.compute), share(team.times.encode), share(team.times.wait),
                         share(team.times.decode)));
}

std::string Progress::step_line(const StepReport& report) {
  const double seconds = report.seconds - shown_seconds_;
  const auto steps = static_cast<double>(report.step - shown_step_);
  shown_step_ = report.step;
  shown_seconds_ = report.seconds;
  std::string line = fmt::format("epoch {}  step {}/{}  loss {:.4f}  lr {:.4g}", report.epoch, report.step,
                                 run_.total_steps, report.loss, report.lr);
  if (seconds <= 0) return line;  // the first step
  const double rate = steps * static_cast<double>(run_.samples_per_step) / seconds;
  const double left = static_cast<double>(run_.total_steps - report.step) * seconds / steps;
  return line + fmt::format("  {} {}/s  {} left", grouped(std::llround(rate)), run_.noun, duration_text(left));
}

void Progress::print_line(const std::string& line) {
  out_.print((std::exchange(line_open_, false) ? "\r\x1b[K" : "") + line);
}

void Progress::end_live_line() {
  if (std::exchange(line_open_, false)) out_.print("");
}

}  // namespace tern::trainer
