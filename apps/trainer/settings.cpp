#include "tern/apps/trainer/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "tern/apps/trainer/datasets.h"
#include "tern/apps/trainer/worker_settings.h"
#include "tern/core/error.h"

namespace tern {
namespace {

constexpr double kUnbounded = HUGE_VAL;
// So that products of two counts cannot overflow.
constexpr int64_t kMostSteps = 1'000'000'000, kMostImages = 1'000'000'000, kMostWidth = 1'000'000, kMostSide = 4096;
constexpr double kMostGrace = 86400;  // seconds

/// [low, high], or (low, ...) and (..., high) where an end is open.
struct Range {
  double low, high = kUnbounded;
  bool low_open = false, high_open = false;

  bool contains(double x) const {
    return std::isfinite(x) && (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
  }
};

std::string to_string(const Range& range) {
  std::string text = join({"a finite number ", range.low_open ? "above " : "from ", range.low});
  if (range.high != kUnbounded) text += join({range.high_open ? " to below " : " to ", range.high});
  return text;
}

void check_range(const char* flag, double value, const Range& range) {
  check_input(range.contains(value), "--", flag, ": found ", value, ", expected ", range);
}

void check_count(const char* flag, int64_t value, int64_t least, int64_t most = INT64_MAX) {
  check_input(value >= least, "--", flag, ": found ", value, ", expected ", least, " or more");
  check_input(value <= most, "--", flag, ": found ", value, ", expected ", most, " or fewer");
}

void validate_ranges(const TrainSettings& s) {
  check_count("batch-size", s.batch_size, 1, kMostImages);
  check_count("eval-batch-size", s.eval_batch_size, 1, kMostImages);
  check_count("loader-threads", s.loader_threads, 0, 256);
  check_count("resize", s.resize, 1, kMostSide);
  if (s.epochs) check_count("epochs", *s.epochs, 0, kMostSteps);
  if (s.iterations) check_count("iterations", *s.iterations, 0, kMostSteps);
  check_range("lr", s.lr, {.low = 0, .low_open = true});
  check_range("lr-power", s.lr_power, {.low = 0, .low_open = true});
  check_count("warmup", s.warmup, 0, kMostSteps);
  check_range("warmup-lr", s.warmup_lr, {.low = 0});
  check_range("momentum", s.momentum, {.low = 0, .high = 1, .high_open = true});
  check_range("weight-decay", s.weight_decay, {.low = 0});
  check_range("ema-decay", s.ema_decay, {.low = 0, .high = 1, .high_open = true});
  check_range("label-smoothing", s.label_smoothing, {.low = 0, .high = 1, .high_open = true});
  check_range("clip-norm", s.clip_norm, {.low = 0});
  check_count("seed", s.seed, 0);
  check_count("threads", s.threads, 0, 1024);
  check_count("checkpoint-every", s.checkpoint_every, 0);
  check_range("grace", s.grace, {.low = 0, .high = kMostGrace});
  for (const auto& [flag, value] : s.counts) check_count(flag.c_str(), value, 1, kMostWidth);
  double previous = 0;
  for (const double step : s.lr_steps) {
    check_input(step < 1 || (step == std::floor(step) && step <= kMostSteps), "--lr-steps: found ", step,
                ", expected whole steps, or shares of the run below 1");
    check_input(step > previous, "--lr-steps: found ", step, " after ", previous, ", expected steps in rising order");
    previous = step;
  }
}

/// What --eval-only and --predict use: the model, the kind of data, the machine.
constexpr std::string_view kOfAModel[] = {"data",   "data-dir",  "resize",        "fit",        "threads",
                                          "device", "precision", "deterministic", "checkpoint", "resume",
                                          "init",   "eval-only", "predict"};
/// What --eval-only uses besides.
constexpr std::string_view kOfEvaluation[] = {"eval-batch-size", "cache", "loader-threads", "seed", "log",
                                              "tensorboard",     "quiet", "grace"};

}  // namespace

std::string reason_without_effect(const std::string& name, const TrainSettings& s) {
  const bool reads = std::ranges::count(kOfAModel, name) > 0;
  if (s.eval_only && !reads && std::ranges::count(kOfEvaluation, name) == 0) return "--eval-only does not use it";
  if (!s.predict.empty() && !reads) return "--predict does not use it";
  if (name == "checkpoint" && (s.eval_only || !s.predict.empty()) && !s.resume) return "it needs --resume";
  if (name == "lr-power" && s.lr_schedule != "poly") return "it belongs to --lr-schedule poly";
  if (name == "lr-steps" && s.lr_schedule != "step") return "it belongs to --lr-schedule step";
  if (name == "warmup-lr" && s.warmup == 0) return "it needs --warmup";
  if (name == "momentum" && s.optimizer != "momentum" && s.optimizer != "nesterov")
    return "--optimizer " + s.optimizer + " has none";
  if (name == "cuda-graph" && s.device == "cpu") return "it needs --device cuda";
  if (name == "cuda-graph" && s.workers) return "the exchange of several ranks is part of each step";
  if (name == "cuda-graph" && s.profile) return "--profile times operations that run one by one";
  if (name == "deterministic" && s.device == "cpu") return "on the CPU losses are the same from run to run";
  if (name == "data-dir" && !find_dataset(s.data).needs_folder) return "--data " + s.data + " reads no files";
  if ((name == "resize" || name == "fit" || name == "cache") && s.data != "images")
    return "it belongs to --data images";
  if (name == "checkpoint-every" && s.checkpoint.empty()) return "it needs --checkpoint DIR";
  return worker_reason_without_effect(name, s);
}

void validate(const TrainSettings& s) {
  validate_ranges(s);
  validate_workers(s);
  check_input(!s.epochs || !s.iterations, "--epochs and --iterations contradict each other: give one");
  check_input(s.plot.empty() || s.plot.ends_with(".svg"), "--plot: found '", s.plot,
              "', expected a name ending in .svg");
  check_input(s.optimizer != "nesterov" || s.momentum > 0, "--optimizer nesterov: needs --momentum above 0");
  check_input(s.lr_schedule != "step" || !s.lr_steps.empty(), "--lr-schedule step: needs --lr-steps X,X,...");
  check_input(s.precision != "tf32" || s.device != "cpu",
              "--precision tf32: found --device cpu, expected cuda or cuda:N; the CPU computes in fp32 and bf16");
  // For a prediction the folder of images names the classes.
  const bool needs_folder = find_dataset(s.data).needs_folder && (s.predict.empty() || s.data == "images");
  check_input(!needs_folder || !s.data_dir.empty(), "--data ", s.data, ": needs --data-dir DIR");
  check_input(!s.resume || !s.checkpoint.empty(), "--resume: needs --checkpoint DIR, the folder to go on from");
  check_input(!s.resume || s.init.empty(), "--init and --resume contradict each other: give one");
  check_input(!s.eval_only || s.predict.empty(), "--eval-only and --predict contradict each other: give one");
  const char* reader = s.eval_only ? "--eval-only" : "--predict";
  if (s.eval_only || !s.predict.empty())
    check_input(s.resume || !s.init.empty(), reader, ": needs a model: --init FILE, or --checkpoint DIR --resume");
}

}  // namespace tern
