#include "tern/trainer/flags/rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>
#include <type_traits>

#include "tern/core/device.h"
#include "tern/core/error.h"
#include "tern/dist/comm/address.h"
#include "tern/dist/comm/in_process.h"
#include "tern/dist/comm/link.h"
#include "tern/dist/comm/mpi.h"
#include "tern/dist/comm/token.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/flags/words.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {
namespace {

std::string described(const Range& range) {
  std::string text = join({"a finite number ", range.low_open ? "above " : "from ", range.low});
  if (range.high != HUGE_VAL) text += join({range.high_open ? " to below " : " to ", range.high});
  return text;
}

bool contains(const Range& range, double x) {
  return std::isfinite(x) && (range.low_open ? x > range.low : x >= range.low) &&
         (range.high_open ? x < range.high : x <= range.high);
}

void check_both_ends(const Flag& flag, const MessagePart& found, bool within) {
  check_input(within, "--", flag.name, ": found ", found.text(), ", expected ", flag.range.low, " to ",
              flag.range.high);
}

void check_range(const Flag& flag, double value) {
  if (flag.range.tells_both) return check_both_ends(flag, value, contains(flag.range, value));
  const bool unbounded = flag.range.low == -HUGE_VAL && flag.range.high == HUGE_VAL;
  check_input(unbounded || contains(flag.range, value), "--", flag.name, ": found ", value, ", expected ",
              described(flag.range));
}

void check_range(const Flag& flag, int64_t value) {
  const auto number = static_cast<double>(value);
  if (flag.range.tells_both) return check_both_ends(flag, value, contains(flag.range, number));
  check_input(number >= flag.range.low, "--", flag.name, ": found ", value, ", expected ", flag.range.low, " or more");
  check_input(number <= flag.range.high, "--", flag.name, ": found ", value, ", expected ", flag.range.high,
              " or fewer");
}

template <class T>
requires std::is_arithmetic_v<T>
void check_range(const Flag& flag, const std::optional<T>& value) {
  if (value) check_range(flag, *value);
}

void validate_ranges(const TrainSettings& s) {
  visit_flags(s, [&](const Flag& flag, const auto& field) {
    if constexpr (requires { check_range(flag, field); })
      if (s.workers || !flag.of_workers) check_range(flag, field);
  });
  constexpr double kMostWidth = 1e6;
  for (const auto& [flag, value] : s.counts)
    check_range(Flag{nullptr, flag.c_str(), nullptr, nullptr}.in({.low = 1, .high = kMostWidth}), value);
  double previous = 0;
  for (const double step : s.lr_steps) {
    check_input(step < 1 || (step == std::floor(step) && step <= kMostSteps), "--lr-steps: found ", step,
                ", expected a whole number of steps, or a share of the run, below 1");
    check_input(step > 0, "--lr-steps: found ", step, ", expected steps above 0");
    check_input(step > previous, "--lr-steps: found ", step, " after ", previous, ", expected steps in rising order");
    previous = step;
  }
  const Score score = task_of(s)->scores().front();
  const double target = s.target_score.value_or(0);
  check_input(score.unit != "%" || (target >= 0 && target <= 100), "--target-score: found ", target,
              ", expected 0 to 100: ", score.name, " is in %");
  check_input(s.warmup < 1 || s.warmup == std::floor(s.warmup), "--warmup: found ", s.warmup,
              ", expected a whole number of steps, or a share of the run, below 1");
}

/// Adds `flag` to an InputError that `check` throws.
template <class Check>
void check_part(const char* flag, const Check& check) {
  try {
    check();
  } catch (const InputError& error) {
    throw InputError(join({flag, ": ", error.what()}));
  }
}

void check_bind(const TrainSettings& s) {
  if (s.bind.empty() || s.transport == RankTransport::mpi) return;  // with mpi, --bind itself is refused
  const Address address = listening_address(s);
  if (detail::is_loopback(address)) return;
  const auto needs = [&](bool met, const char* sentence) {
    check_input(met, "found ", address.host, ", which other machines can reach, and ", sentence);
  };
  needs(s.wire != Wire::plain, "--wire plain; expected tls or mac");
  needs(!token_from_environment().empty(),
        "no job token; expected a token in TERN_TOKEN, or in the file that TERN_TOKEN_FILE names");
}

void check_exchange_of(const TrainSettings& s) {
  if (s.method != TrainingMethod::ist) return check_exchange(s.exchange, *make_codec(s.codec, s.codecs));
  check_input(find_word<SubnetExchange>(s.exchange).has_value(), "found '", s.exchange, "', expected ",
              listed(words_of(SubnetExchange{})), " with --method ist");
}

void validate_store(const TrainSettings& s) {
  if (s.method != TrainingMethod::ist || s.ist_store != ModelStore::sharded) return;
  constexpr const char* kFlag = "with --ist-store sharded";
  check_input(*s.workers >= 2, "--workers: found ", *s.workers, ", expected 2 or more ", kFlag,
              ", because each keeps a slice");
  check_input(s.exchange.empty() || s.exchange == to_string(SubnetExchange::peer), "--exchange: found ", s.exchange,
              ", expected peer ", kFlag, ", because no rank holds the whole model");
  check_input(s.codec == kFloats, "--codec: found ", s.codec, ", expected ", kFloats, " ", kFlag,
              ", because a rank keeps no second copy to code changes against");
  check_input(s.device == kCpu, "--device: found ", s.device, ", expected ", kCpu, " ", kFlag);
  check_input(!s.init_partial, "--init-partial and --ist-store sharded contradict each other: a rank reads its slices");
  check_input(s.freeze.empty(), "--freeze and --ist-store sharded contradict each other: all neurons train");
}

void validate_method(const TrainSettings& s) {
  const std::string with = " with --method " + std::string(to_string(s.method));
  check_input(s.fragments <= s.local_steps, "--fragments: found ", s.fragments, ", expected at most --local-steps, ",
              s.local_steps);
  check_input(s.delay < s.local_steps, "--delay: found ", s.delay, ", expected less than --local-steps, ",
              s.local_steps);
  if (s.method == TrainingMethod::sparseloco) {
    const CodecTraits codec = make_codec(s.codec, s.codecs)->traits();
    check_input(codec.sparse && codec.promise == CodecPromise::feedback, "--codec: found ", s.codec,
                ", expected topk-block:decay=X with X above 0, or error-feedback: with topk, randk or topk-block",
                with);
  }
  if (s.method != TrainingMethod::demo) return;
  check_input(s.optimizer == UpdateRule::sgd, "--optimizer: found ", s.optimizer, ", expected sgd", with,
              ", which has a momentum of its own");
  check_input(s.clip_norm == 0, "--clip-norm and --method demo contradict each other: a step is made of signs");
}

void validate_workers(const TrainSettings& s) {
  if (!s.workers) return;
  validate_store(s);
  validate_method(s);
  samples_per_rank(s, static_cast<int>(*s.workers));
  check_part("--bind", [&] { check_bind(s); });
  if (!s.link.empty()) check_part("--link", [&] { parse_link(s.link); });
  check_input(s.transport != RankTransport::nccl || parse_device(s.device).type == DeviceType::cuda, "--device: found ",
              s.device, ", expected cuda with --transport nccl, which moves tensors from GPU to GPU");
  if (!s.exchange.empty()) check_part("--exchange", [&] { check_exchange_of(s); });
  check_input(s.method != TrainingMethod::ist || s.ist_eval != SubnetEvaluation::batch || s.eval_batch_size >= 2,
              "--eval-batch-size: found ", s.eval_batch_size,
              ", expected 2 or more with --ist-eval batch, because it takes the statistics of each batch");
  check_input(
      !s.calibrate_batches || s.ema_decay == 0,
      "--calibrate-batches and --ema-decay contradict each other: the statistics would not be those of the averages");
  check_input(traits_of(s.method).every_step || s.ema_decay == 0, "--ema-decay and --method ", s.method,
              " contradict each other: each worker trains its own model, expected --ema-decay 0");
}

}  // namespace

std::string reason_without_effect(const Flag& flag, const TrainSettings& s) {
  if (s.eval_only && flag.use == Use::training)
    return flag.name == std::string_view("ist-store")
               ? "--eval-only reads the whole model; use --iterations 0 to evaluate slices"
               : "--eval-only does not use it";
  if (!s.predict.empty() && flag.use != Use::model) return "--predict does not use it";
  const auto unmet = std::ranges::find(flag.needs, false, &Need::met);
  return unmet == flag.needs.end() ? "" : unmet->otherwise;
}

GroupSpec parse_group(std::string_view spec, const TrainSettings& s) {
  const size_t colon = spec.find(':');
  check_input(colon != std::string_view::npos && colon > 0 && colon + 1 < spec.size(), "found '", spec,
              "', expected PATTERN:NAME=X,...");
  GroupSpec read = {.group = {.pattern = std::string(spec.substr(0, colon))}};
  GroupSettings& group = read.group.settings;
  std::set<std::string> given;
  for (std::string_view rest = spec.substr(colon + 1); !rest.empty();) {
    const std::string part(rest.substr(0, rest.find(',')));
    check_input(part.size() + 1 != rest.size(), "found '", spec,
                "', which ends with a comma; expected NAME=X after it");
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals), text = part.substr(std::min(equals + 1, part.size()));
    const auto number = [&](const Range& range) {
      double value = 0;
      read_value({text}, value);
      check_input(contains(range, value), "found ", value, ", expected ", described(range));
      return value;
    };
    check_part(join({"'", read.group.pattern, "', ", name}).c_str(), [&] {
      check_input(given.insert(name).second, "given twice, expected once");
      if (name == "lr") {
        read.lr = number(kPositive);
        group.lr_scale = *read.lr / s.lr;
      } else if (name == "momentum") {
        group.momentum = number(kShare);
      } else if (name == "weight-decay") {
        check_input(!s.weight_decay_in_gradient, "--weight-decay-in-gradient takes one for all parameters");
        group.weight_decay = number(kNotNegative);
      } else if (name == "rule") {
        check_input(s.method != TrainingMethod::demo,
                    "found one, expected none with --method demo; if it is of the recipe, give groups without it");
        read_value({text}, read.rule);
      } else if (name == "until") {
        check_input(s.method != TrainingMethod::demo,
                    "found one, expected none with --method demo; if it is of the recipe, give groups without it");
        check_input(s.lr_schedule == LrSchedule::poly || s.lr_schedule == LrSchedule::cosine, "--lr-schedule ",
                    s.lr_schedule, " does not end");
        read.until = number(kPositive);
        check_input(*read.until < 1 || *read.until == std::floor(*read.until), "found ", *read.until,
                    ", expected a whole number of steps, or a share of the run, below 1");
      } else {
        fail_input({"unknown, expected lr, momentum, weight-decay, rule or until"});
      }
    });
  }
  const UpdateRule rule = read.rule.value_or(s.optimizer);
  check_input(!group.momentum || has_momentum(rule), "'", read.group.pattern,
              "', momentum: ", read.rule ? "rule " : "--optimizer ", rule, " has none");
  check_input(read.rule != UpdateRule::nesterov || group.momentum.value_or(s.momentum) > 0, "'", read.group.pattern,
              "', rule: nesterov needs a momentum above 0");
  return read;
}

void validate(const TrainSettings& s) {
  check_part("--codec", [&] { make_codec(s.codec, s.codecs); });
  validate_ranges(s);
  validate_workers(s);
  for (const std::string& spec : s.group) check_part("--group", [&] { parse_group(spec, s); });
  check_input(!s.epochs || !s.iterations, "--epochs and --iterations contradict each other: give one");
  check_input(s.accumulate == 1 || !s.overlap,
              "--accumulate and --overlap contradict each other: gradients travel once they are added");
  check_input(s.stale == 0 || !s.overlap,
              "--stale and --overlap contradict each other: a stale exchange travels during the whole next step");
  check_input(s.log_every.value_or(1) == 1 || s.accumulate == 1,
              "--log-every and --accumulate contradict each other: the loss of each batch of a step is read at once");
  check_input(s.log_every.value_or(1) == 1 || s.plot.empty(),
              "--log-every and --plot contradict each other: a plot needs the scores of each step");
  check_input(s.plot.empty() || s.plot.ends_with(".svg"), "--plot: found '", s.plot,
              "', expected a name ending in .svg");
  check_input(s.optimizer != UpdateRule::nesterov || s.momentum > 0, "--optimizer nesterov: needs --momentum above 0");
  check_input(s.lr_schedule != LrSchedule::step || !s.lr_steps.empty(), "--lr-schedule step: needs --lr-steps X,X,...");
  check_input(s.precision != Precision::tf32 || s.device != kCpu,
              "--precision tf32: found --device cpu, expected cuda or cuda:N; the CPU computes in fp32 and bf16");
  // For pictures, --predict needs no data set, with one exception: --data images reads the names of the classes from
  // its folder.
  const DatasetEntry& dataset = find_dataset(s);
  const bool needs_folder = dataset.needs_folder && (s.predict.empty() || dataset.resizes || needs_data_to_describe(s));
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
    check_input(place.master.port != 0, "found port 0, expected 1 to 65535");
  } catch (const InputError& error) {
    throw InputError(join({"--master: ", error.what()}));
  }
  place.source = "--rank, --world-size";
  count_local_ranks(place);
  return place;
}

std::optional<ClusterPlace> find_rank(const TrainSettings& s) {
  const auto place = place_by_flags(s);
  if (s.transport != RankTransport::mpi) return place ? place : find_place();
  check_input(!place, "--transport mpi: found --rank, --world-size and --master, expected none: MPI gives the ranks");
  mpi_version();  // throws its own error if this build has no MPI
  const auto told = find_mpi_place();
  check_input(told.has_value(),
              "--transport mpi: no launcher of MPI started this process, expected for example: mpirun -n ",
              s.workers.value_or(2), " PROGRAM --transport mpi");
  return told;
}

void settle(TrainSettings& s, const ClusterPlace& place) {
  check_input(!s.eval_only && s.predict.empty(), s.eval_only ? "--eval-only" : "--predict",
              " needs one process, found rank ", place.rank, " of ", place.size, ", from ", place.source);
  check_input(!s.workers || *s.workers == place.size, "--workers: found ", s.workers.value_or(0), ", expected ",
              place.size, ", as started by ", place.source);
  check_input(s.transport != RankTransport::inproc,
              "--transport inproc: found ranks that run as processes, "
              "started by ",
              place.source, "; expected threads of one process");
  check_input(place.supervised || s.max_restarts == 0,
              "--max-restarts would change nothing: the ranks were started by ", place.source);
  check_input(s.link.empty() || place.local_size == place.size, "--link imitates a network on one machine: found ",
              place.local_size, " of ", place.size, " ranks here, as started by ", place.source);
  s.workers = place.size;
  if (!s.transport) s.transport = RankTransport::socket;
}

Address listening_address(const TrainSettings& s) {
  const bool has_port =
      s.bind.starts_with('[') ? s.bind.find("]:") != std::string::npos : std::ranges::count(s.bind, ':') == 1;
  if (has_port) return parse_address(s.bind);
  if (!s.bind.starts_with('[')) return {.host = s.bind};
  check_input(s.bind.ends_with(']'), "found ", s.bind, ", expected a ] at the end of the address");
  return {.host = s.bind.substr(1, s.bind.size() - 2)};
}

Deadlines rank_deadlines(const TrainSettings& s) {
  Deadlines deadlines;
  deadlines.dead_after = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s.dead_after));
  deadlines.heartbeat = std::min(deadlines.heartbeat, deadlines.dead_after / 5);
  if (s.link.empty()) return deadlines;
  // On a slow imitated link, a rank can wait a long time for bytes that are under way, and nothing is wrong.
  constexpr double kFast = 1.25e8, kMost = 288;  // 1 Gbit/s; a day
  if (const double rate = parse_link(s.link).bytes_per_second; rate > 0 && rate < kFast)
    deadlines.operation =
        std::chrono::duration_cast<Clock::duration>(deadlines.operation * std::min(kFast / rate, kMost));
  return deadlines;
}

}  // namespace tern::trainer
