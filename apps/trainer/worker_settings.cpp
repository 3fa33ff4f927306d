#include "tern/apps/trainer/worker_settings.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tern/apps/trainer/loaders.h"
#include "tern/core/device.h"
#include "tern/core/error.h"
#include "tern/dist/comm/address.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/link.h"
#include "tern/dist/comm/socket.h"
#include "tern/dist/comm/token.h"
#include "tern/dist/exchange/exchange.h"

namespace tern {
namespace {

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

}  // namespace

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

}  // namespace tern
