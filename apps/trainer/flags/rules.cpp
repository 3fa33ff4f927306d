#include "tern/trainer/flags/rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "tern/core/device.h"
#include "tern/core/error.h"
#include "tern/dist/comm/address.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/link.h"
#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/token.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/trainer/run/datasets.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {
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

/// What only ranks that train together use.
constexpr std::string_view kOfWorkers[] = {"local-steps",
                                           "ist-scope",
                                           "ist-momentum",
                                           "ist-eval",
                                           "calibrate-batches",
                                           "transport",
                                           "method",
                                           "codec",
                                           "exchange",
                                           "min-compress",
                                           "keep-float",
                                           "overlap",
                                           "weight-decay-in-gradient",
                                           "check-every",
                                           "link"};
/// What only ranks that are processes use.
constexpr std::string_view kOfProcesses[] = {"dead-after", "max-restarts", "bind"};

/// Seconds: below, a busy machine looks dead; a day says that nobody is waited for in vain.
constexpr double kLeastSilence = 0.1, kMostSilence = 86400;

/// Names the flag in what `check` throws.
template <class Check>
void check_part(const char* flag, const Check& check) {
  try {
    check();
  } catch (const InputError& error) {
    throw InputError(join({flag, ": ", error.what()}));
  }
}

void check_bind(const TrainSettings& s) {
  if (s.bind.empty()) return;
  const Address address = listening_address(s);
  check_input(detail::is_loopback(address) || !token_from_environment().empty(), "other machines can reach ",
              address.host,
              ", so that a job token is needed: in the file that TERN_TOKEN_FILE names, or in TERN_TOKEN");
}

void check_exchange_of(const TrainSettings& s) {
  if (s.method != "ist") return check_exchange(s.exchange, *make_codec(s.codec, s.codecs));
  check_input(s.exchange == "coordinator" || s.exchange == "peer", "found '", s.exchange,
              "', expected coordinator|peer with --method ist");
}

void validate_workers(const TrainSettings& s) {
  if (!s.workers) return;
  check_input(*s.workers >= 1 && *s.workers <= kMaxRanks, "--workers: found ", *s.workers, ", expected 1 to ",
              kMaxRanks);
  images_per_rank(s, static_cast<int>(*s.workers));
  check_input(s.dead_after >= kLeastSilence && s.dead_after <= kMostSilence, "--dead-after: found ", s.dead_after,
              ", expected ", kLeastSilence, " to ", kMostSilence);
  check_input(s.max_restarts >= 0, "--max-restarts: found ", s.max_restarts, ", expected 0 or more");
  check_input(s.check_every >= 0, "--check-every: found ", s.check_every, ", expected 0 or more");
  check_input(s.min_compress >= 0, "--min-compress: found ", s.min_compress, ", expected 0 or more");
  check_part("--bind", [&] { check_bind(s); });
  check_part("--link", [&] { parse_link(s.link); });
  check_part("--codec", [&] { make_codec(s.codec, s.codecs); });
  check_input(s.transport != "nccl" || parse_device(s.device).type == DeviceType::cuda, "--device: found ", s.device,
              ", expected cuda with --transport nccl, which moves tensors from GPU to GPU");
  if (!s.exchange.empty()) check_part("--exchange", [&] { check_exchange_of(s); });
  check_input(s.method != "ist" || s.ist_eval != "batch" || s.eval_batch_size >= 2, "--eval-batch-size: found ",
              s.eval_batch_size, ", expected 2 or more with --ist-eval batch: one image has no batch statistics");
  check_input(s.calibrate_batches.value_or(1) >= 1, "--calibrate-batches: found ", s.calibrate_batches.value_or(0),
              ", expected 1 or more");
  check_input(
      !s.calibrate_batches || s.ema_decay == 0,
      "--calibrate-batches and --ema-decay contradict each other: statistics are of the parameters as they are");
  check_input(s.local_steps >= 1, "--local-steps: found ", s.local_steps, ", expected 1 or more");
  check_input(s.method == "data-parallel" || s.ema_decay == 0, "--ema-decay and --method ", s.method,
              " contradict each other: each worker has a model of its own");
}

std::string worker_reason_without_effect(const std::string& name, const TrainSettings& s) {
  const bool of_processes = std::ranges::count(kOfProcesses, name) > 0;
  if (!s.workers && (of_processes || std::ranges::count(kOfWorkers, name) > 0)) return "it needs --workers N";
  if (of_processes && s.transport != "socket" && s.transport != "nccl")
    return "it belongs to --transport socket and nccl";
  if (name == "link" && s.transport == "nccl") return "what NCCL moves does not pass it";
  if (name == "local-steps" && s.method == "data-parallel") return "--method data-parallel exchanges in every step";
  if (name.starts_with("ist-") && s.method != "ist") return "it belongs to --method ist";
  if (name == "calibrate-batches" && s.method == "ist" && s.ist_eval != "calibrated")
    return "it belongs to --ist-eval calibrated";
  if ((name == "min-compress" || name == "keep-float") && s.method == "ist") return "--method ist codes all of a slice";
  if ((name == "overlap" || name == "weight-decay-in-gradient") && s.method != "data-parallel")
    return "it belongs to --method data-parallel";
  if (name == "max-restarts" && s.checkpoint.empty()) return "it needs --checkpoint DIR";
  if ((name == "min-compress" || name == "keep-float") && s.codec == "none") return "--codec none sends floats anyway";
  if (name == "weight-decay-in-gradient" && s.weight_decay == 0) return "it needs --weight-decay X";
  return "";
}

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

std::optional<ClusterPlace> place_by_flags(const TrainSettings& s) {
  const bool any = s.rank || s.world_size || !s.master.empty();
  if (!any) return {};
  check_input(s.rank && s.world_size && !s.master.empty(),
              !s.rank         ? "--rank"
              : !s.world_size ? "--world-size"
                              : "--master",
              ": not found, expected --rank R --world-size N --master ADDR:PORT together");
  check_input(*s.world_size >= 1 && *s.world_size <= kMaxRanks, "--world-size: found ", *s.world_size,
              ", expected 1 to ", kMaxRanks);
  check_input(*s.rank >= 0 && *s.rank < *s.world_size, "--rank: found ", *s.rank, ", expected 0 to ",
              *s.world_size - 1);
  ClusterPlace place = {.rank = static_cast<int>(*s.rank), .size = static_cast<int>(*s.world_size)};
  try {
    place.master = parse_address(s.master);
  } catch (const InputError& error) {
    throw InputError(join({"--master: ", error.what()}));
  }
  place.source = "--rank, --world-size";
  count_local_ranks(place);
  return place;
}

void settle(TrainSettings& s, const ClusterPlace& place) {
  check_input(!s.eval_only && s.predict.empty(), s.eval_only ? "--eval-only" : "--predict",
              " is for one process, found rank ", place.rank, " of ", place.size, " by ", place.source);
  check_input(!s.workers || *s.workers == place.size, "--workers: found ", s.workers.value_or(0), ", expected ",
              place.size, ", as started by ", place.source);
  check_input(s.transport != "inproc", "--transport inproc: found ranks that are processes, by ", place.source);
  check_input(place.supervised || s.max_restarts == 0,
              "--max-restarts would change nothing: the ranks were started by ", place.source);
  check_input(s.link.empty() || place.local_size == place.size, "--link imitates a network on one machine: found ",
              place.local_size, " of ", place.size, " ranks here, as started by ", place.source);
  s.workers = place.size;
  if (s.transport.empty()) s.transport = "socket";
}

Address listening_address(const TrainSettings& s) {
  const bool has_port =
      s.bind.starts_with('[') ? s.bind.find("]:") != std::string::npos : std::ranges::count(s.bind, ':') == 1;
  if (has_port) return parse_address(s.bind);
  return {.host = s.bind.starts_with('[') ? s.bind.substr(1, s.bind.size() - 2) : s.bind};
}

Deadlines rank_deadlines(const TrainSettings& s) {
  Deadlines deadlines;
  deadlines.dead_after = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s.dead_after));
  deadlines.heartbeat = std::min(deadlines.heartbeat, deadlines.dead_after / 5);
  return deadlines;
}

}  // namespace tern::trainer
