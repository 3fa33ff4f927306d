#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/dist/comm/in_process.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// Upper bounds, so that the product of two counts cannot overflow.
inline constexpr double kMostSteps = 1e9, kMostSamples = 1e9;
inline constexpr double kMostStepsTogether = 10'000;  ///< for --log-every
inline constexpr double kDay = 86400;                 ///< seconds

/// The numbers that a flag accepts: from `low` to `high`. An open end is excluded.
struct Range {
  double low = -HUGE_VAL, high = HUGE_VAL;
  bool low_open = false, high_open = false;
  bool tells_both = false;  ///< the error message names both ends, not only the violated one
};

/// Which processes and runs must have equal values of a setting.
enum class Agreement : uint8_t {
  none,
  ranks,   ///< all ranks: otherwise they would wait for each other forever, or evaluate different models
  result,  ///< all ranks, and a resumed run: the flag changes the losses
};

/// Which kinds of run use a flag.
enum class Use : uint8_t {
  training,
  evaluation,  ///< training and --eval-only
  model,       ///< training, --eval-only and --predict
};

/// A condition on other settings; if it is not met, a flag has no effect.
struct Need {
  bool met;
  std::string otherwise;  ///< the reason to print if the condition is not met
};

/// Everything about one setting except its type and its default, which TrainSettings has. If the setting is a choice,
/// its words are the allowed values.
struct Flag {
  const char* group;
  const char* name;   ///< without dashes
  const char* value;  ///< placeholder for the value in the help; null for a switch
  const char* help;
  Agreement agreement = Agreement::none;
  Use use = Use::training;
  Range range = {};
  bool of_workers = false;  ///< its range is checked only if several ranks train together
  bool offered = true;      ///< false: no run of this application can use it, so it is not a flag of the program
  std::vector<Need> needs = {};

  Flag&& shapes_result() && { return std::move(*this).agrees(Agreement::result); }
  Flag&& agrees(Agreement among) && {
    agreement = among;
    return std::move(*this);
  }
  Flag&& used_by(Use by) && {
    use = by;
    return std::move(*this);
  }
  Flag&& in(Range numbers) && {
    range = numbers;
    return std::move(*this);
  }
  Flag&& offered_if(bool useful) && {
    offered = useful;
    return std::move(*this);
  }
  Flag&& needing(bool met, std::string otherwise) && {
    needs.push_back({met, std::move(otherwise)});
    return std::move(*this);
  }
  Flag&& between_ranks(const TrainSettings& s) && {
    of_workers = true;
    return std::move(*this).needing(s.workers.has_value(), "it needs --workers N");
  }
  Flag&& between_processes(const TrainSettings& s) && {
    const bool processes = s.transport == RankTransport::socket || s.transport == RankTransport::nccl;
    return std::move(*this).between_ranks(s).needing(processes, "it belongs to --transport socket and nccl");
  }
  /// For processes that hear from each other by heartbeats.
  Flag&& between_beating_processes(const TrainSettings& s) && {
    if (s.transport == RankTransport::mpi) return std::move(*this).between_ranks(s);
    return std::move(*this).between_processes(s);
  }
};

/// Makes the flags of one group, for example `flag("lr", "X", "Learning rate")`.
struct FlagGroup {
  const char* group;

  Flag operator()(const char* name, const char* value, const char* help) const {
    return {.group = group, .name = name, .value = value, .help = help};
  }
};

inline constexpr Range kPositive = {.low = 0, .low_open = true}, kNotNegative = {.low = 0}, kFromOne = {.low = 1},
                       kShare = {.low = 0, .high = 1, .high_open = true};

template <class Settings, class Visit>
void visit_data_flags(Settings& s, Visit& visit) {
  const FlagGroup flag = {"Data"};
  constexpr Range kSamples = {.low = 1, .high = kMostSamples};
  const DatasetEntry* dataset = known_dataset(s);
  const bool resizes = dataset && dataset->resizes;
  const auto offers = [&](auto member) { return std::ranges::any_of(offered_datasets(s), member); };
  const auto names_of = [&](bool DatasetEntry::*member) {
    std::string names;
    for (const DatasetEntry& entry : offered_datasets(s))
      if (entry.*member) names += (names.empty() ? "" : "|") + entry.name;
    return names;
  };
  const std::string resized = names_of(&DatasetEntry::resizes), cached = names_of(&DatasetEntry::caches);
  const bool any_resizes = !resized.empty(), any_folder = offers(&DatasetEntry::needs_folder);
  visit(flag("data", "NAME", "Data set").shapes_result().used_by(Use::model), s.data);
  visit(flag("data-dir", "DIR",
             any_resizes ? "Folder with the data set's files (images: or a list of files)"
                         : "Folder with the data set's files")
            .used_by(Use::model)
            .offered_if(any_folder)
            .needing(!dataset || dataset->needs_folder, "--data " + s.data + " reads no files"),
        s.data_dir);
  visit(flag("resize", "N", "Resize images to squares of N by N pixels")
            .shapes_result()
            .used_by(Use::model)
            .in({.low = 1, .high = 4096})
            .offered_if(any_resizes)
            .needing(resizes, "it belongs to --data " + resized),
        s.resize);
  visit(flag("fit", "NAME", "How images fit the square: keep proportions and crop to the middle, or squash")
            .shapes_result()
            .used_by(Use::model)
            .offered_if(any_resizes)
            .needing(resizes, "it belongs to --data " + resized),
        s.fit);
  visit(flag("cache", "DIR", "Keep decoded pictures or spectrograms in this folder, for this run and others")
            .used_by(Use::evaluation)
            .offered_if(!cached.empty())
            .needing(dataset && dataset->caches, "it belongs to --data " + cached),
        s.cache);
  visit(flag("batch-size", "N", "Samples in a training step, of all workers together").shapes_result().in(kSamples),
        s.batch_size);
  visit(flag("local-batch-size", "N", "Samples in a training step, of each worker: sets --batch-size").in(kSamples),
        s.local_batch_size);
  visit(flag("accumulate", "N", "Add the gradients of N steps of --batch-size samples; then exchange and update once")
            .shapes_result()
            .in({.low = 1, .high = kMostSteps}),
        s.accumulate);
  visit(
      flag("eval-batch-size", "N",
           "Samples to evaluate or predict at a time; if not given, at most those of a worker's training step, but at "
           "least 16")
          .used_by(Use::model)
          .in(kSamples),
      s.eval_batch_size);
  visit(flag("top", "N", "A sample is right if its class is among the N most likely ones")
            .agrees(Agreement::ranks)
            .used_by(Use::evaluation)
            .in(kFromOne)
            .offered_if(task_of(s)->ranks_classes()),
        s.top);
  visit(flag("tta", "NAME",
             "Test-time augmentation: evaluate the mean output for an image and its mirror image, or also for shifted "
             "crops")
            .agrees(Agreement::ranks)
            .used_by(Use::evaluation)
            .offered_if(task_of(s)->averages_views()),
        s.tta);
  visit(flag("shuffle", nullptr, "Visit the samples in a new order each epoch").shapes_result(), s.shuffle);
  visit(flag("augmentation", nullptr, "Crop, mirror or change training images at random")
            .shapes_result()
            .offered_if(static_cast<bool>(s.augment)),
        s.augmentation);
  visit(flag("loader-threads", "N", "Threads that prepare batches ahead; 0: none")
            .used_by(Use::evaluation)
            .in({.low = 0, .high = 256}),
        s.loader_threads);
}

/// The words behind "rule=" in --group. `parse_group` checks the groups later.
inline std::vector<std::string> rules_of(const std::vector<std::string>& groups) {
  constexpr std::string_view kRule = "rule=";
  std::vector<std::string> rules;
  for (std::string_view rest : groups)
    for (size_t end = rest.find(':'); end != std::string_view::npos; end = rest.find(',')) {
      rest.remove_prefix(end + 1);
      if (rest.starts_with(kRule)) rules.emplace_back(rest.substr(kRule.size(), rest.find(',') - kRule.size()));
    }
  return rules;
}

/// Whether --optimizer or a group of --group has this rule.
inline bool uses_rule(const TrainSettings& s, UpdateRule rule) {
  return s.optimizer == rule || std::ranges::count(rules_of(s.group), to_string(rule)) > 0;
}

template <class Settings, class Visit>
void visit_training_flags(Settings& s, Visit& visit) {
  const FlagGroup flag = {"Training"};
  constexpr Range kSteps = {.low = 0, .high = kMostSteps};
  const bool muon = uses_rule(s, UpdateRule::muon);
  const bool momentum = muon || uses_rule(s, UpdateRule::momentum) || uses_rule(s, UpdateRule::nesterov);
  visit(flag("epochs", "N",
             s.epochs || s.iterations ? "Passes over the training samples"
                                      : "Passes over the training samples; 1 unless --iterations is given")
            .in(kSteps),
        s.epochs);
  visit(flag("iterations", "N", "Training steps, instead of --epochs").in(kSteps), s.iterations);
  visit(flag("eval-every", "N", "Steps between two evaluations; 0: evaluate after each epoch")
            .agrees(Agreement::ranks)
            .in(kNotNegative),
        s.eval_every);
  visit(flag("target-score", "X", "End at the first evaluation whose (first) score is X or better; 98.5 is 98.5 %")
            .agrees(Agreement::ranks),
        s.target_score);
  visit(flag("optimizer", "NAME", "Update rule").shapes_result(), s.optimizer);
  visit(flag("lr", "X", "Learning rate").shapes_result().in(kPositive), s.lr);
  visit(flag("lr-schedule", "NAME", "Learning-rate schedule").shapes_result(), s.lr_schedule);
  visit(flag("lr-power", "X", "poly: lr (1 - t/T)^X")
            .shapes_result()
            .in(kPositive)
            .needing(s.lr_schedule == LrSchedule::poly, "it belongs to --lr-schedule poly"),
        s.lr_power);
  visit(flag("lr-steps", "X,X,...", "step: change the rate at these steps; below 1: shares of the run")
            .shapes_result()
            .needing(s.lr_schedule == LrSchedule::step, "it belongs to --lr-schedule step"),
        s.lr_steps);
  visit(flag("lr-factor", "X", "step: multiply the rate by this at each of --lr-steps")
            .shapes_result()
            .in(kPositive)
            .needing(s.lr_schedule == LrSchedule::step, "it belongs to --lr-schedule step"),
        s.lr_factor);
  visit(flag("warmup", "X", "First steps, in which the rate rises linearly; below 1: share of the run")
            .shapes_result()
            .in(kSteps),
        s.warmup);
  visit(flag("warmup-lr", "X", "Constant rate in the --warmup steps; 0: it rises")
            .shapes_result()
            .in(kNotNegative)
            .needing(s.warmup != 0, "it needs --warmup"),
        s.warmup_lr);
  visit(flag("momentum", "X",
             "v <- X v + g; momentum: w <- w - lr v; nesterov: w <- w - lr (g + X v); muon: g + X v, made orthogonal")
            .shapes_result()
            .in(kShare)
            .needing(momentum, "--optimizer " + to_string(s.optimizer) + " has none"),
        s.momentum);
  visit(flag("muon-iterations", "N", "muon: Newton-Schulz iterations, which make a step orthogonal")
            .shapes_result()
            .in({.low = 1, .high = 100})
            .needing(muon, "it belongs to --optimizer muon"),
        s.muon_iterations);
  visit(flag("muon-normalize", nullptr, "muon: give rows of a matrix a mean square norm of 1 before each step")
            .shapes_result()
            .needing(muon, "it belongs to --optimizer muon"),
        s.muon_normalize);
  visit(flag("adamw-lr", "X", "muon: learning rate of adamw for vectors, embeddings and the last matrix")
            .shapes_result()
            .in(kPositive)
            .needing(s.optimizer == UpdateRule::muon, "it belongs to --optimizer muon"),
        s.adamw_lr);
  visit(flag("weight-decay", "X",
             "Add X w to the gradient of each parameter w (a model can exclude parameters); adamw and muon: decoupled")
            .shapes_result()
            .in(kNotNegative),
        s.weight_decay);
  visit(flag("group", "SPEC...",
             "Other settings for parameters whose names match: '*.bias:lr=0.02,momentum=0.8,weight-decay=0'; also "
             "rule=NAME, and until=X: the schedule ends at this step, or share of the run")
            .shapes_result(),
        s.group);
  visit(
      flag("ema-decay", "X", "Evaluate and save a moving average of the parameters; 0: off").shapes_result().in(kShare),
      s.ema_decay);
  visit(flag("label-smoothing", "X", "Spread this share of each target over all classes")
            .shapes_result()
            .in(kShare)
            .offered_if(task_of(s)->smooths_labels()),
        s.label_smoothing);
  visit(flag("clip-norm", "X", "Scale gradients down to this norm; 0: off").shapes_result().in(kNotNegative),
        s.clip_norm);
}

inline constexpr const char* kWorkers = "Workers";  ///< the group of the next four functions

template <class Settings, class Visit>
void visit_method_flags(Settings& s, Visit& visit) {
  const FlagGroup flag = {kWorkers};
  const MethodTraits& method = traits_of(s.method);
  const bool diloco = s.method == TrainingMethod::diloco;
  visit(flag("workers", "N", "Ranks that train together, 1 to 64")
            .shapes_result()
            .in({.low = 1, .high = kMaxRanks, .tells_both = true}),
        s.workers);
  visit(flag("transport", "NAME",
             "inproc: threads of one process (the default); socket: processes; nccl: processes with a GPU each, whose "
             "tensors NCCL moves: it needs --device cuda; mpi: processes that mpirun or srun starts")
            .between_ranks(s),
        s.transport);
  visit(flag("method", "NAME",
             "What ranks exchange: gradients (data-parallel), models after some steps alone (local-sgd, diloco; "
             "sparseloco: their largest changes; noloco: with one rank), momentum's strongest frequencies (demo), or "
             "slices of one model (ist)")
            .shapes_result()
            .between_ranks(s),
        s.method);
  visit(
      flag("local-steps", "N", "Steps that a rank trains alone between two exchanges; not with data-parallel and demo")
          .shapes_result()
          .in(kFromOne)
          .between_ranks(s)
          .needing(!method.every_step, join({"--method ", method.word, " exchanges in every step"})),
      s.local_steps);
  visit(flag("outer-lr", "X", "Rate of the step by the ranks' mean change; diloco and noloco: 0.7, sparseloco: 1")
            .shapes_result()
            .in(kPositive)
            .between_ranks(s)
            .needing(method.outer_lr.has_value(), "it belongs to --method diloco, sparseloco and noloco"),
        s.outer_lr);
  visit(flag("outer-momentum", "X", "Momentum of that step; diloco: 0.9, noloco: 0.5")
            .shapes_result()
            .in(kShare)
            .between_ranks(s)
            .needing(method.outer_momentum.has_value(), "it belongs to --method diloco and noloco"),
        s.outer_momentum);
  visit(flag("fragments", "N", "diloco: parts of the model that take turns to be exchanged")
            .shapes_result()
            .in(kFromOne)
            .between_ranks(s)
            .needing(diloco, "it belongs to --method diloco"),
        s.fragments);
  visit(flag("delay", "N", "diloco: a part is sent N steps before its turn, while the ranks train on")
            .shapes_result()
            .in(kNotNegative)
            .between_ranks(s)
            .needing(diloco, "it belongs to --method diloco"),
        s.delay);
  visit(flag("mix", "X", "diloco: share of its own values that a rank keeps at a part's turn")
            .shapes_result()
            .in(kShare)
            .between_ranks(s)
            .needing(diloco, "it belongs to --method diloco"),
        s.mix);
}

/// The flags of independent subnet training.
template <class Settings, class Visit>
void visit_subnet_flags(Settings& s, Visit& visit) {
  const FlagGroup flag = {kWorkers};
  const bool ist = s.method == TrainingMethod::ist;
  visit(flag("ist-scope", "NAME",
             "ist: what is cut: neurons between linear layers, filters of convolutions, or whole residual blocks")
            .shapes_result()
            .between_ranks(s)
            .needing(ist, "it belongs to --method ist"),
        s.ist_scope);
  visit(flag("ist-momentum", "NAME", "ist: the optimizer's state moves with its neuron, or starts at zero")
            .shapes_result()
            .between_ranks(s)
            .needing(ist, "it belongs to --method ist")
            .needing(!ist || s.optimizer != UpdateRule::sgd || !rules_of(s.group).empty(),
                     "--optimizer sgd keeps no state"),
        s.ist_momentum);
  visit(flag("ist-download", "NAME",
             "ist: what ranks receive at the start of a round: floats, or fp16 or bf16 numbers of half the size")
            .shapes_result()
            .between_ranks(s)
            .needing(ist, "it belongs to --method ist")
            .needing(!ist || s.ist_store == ModelStore::whole, "--ist-store sharded moves floats"),
        s.ist_download);
  visit(flag("ist-store", "NAME",
             "ist: a rank has the whole model to evaluate and save it, or never more than a slice; sharded: networks "
             "with one hidden layer")
            .shapes_result()
            .between_ranks(s)
            .needing(ist, "it belongs to --method ist"),
        s.ist_store);
  visit(flag("ist-eval", "NAME",
             "ist: the whole model's batch-norm statistics, from training batches or each test batch's own (a batch of "
             "one sample has none, and is left out)")
            .agrees(Agreement::ranks)
            .between_ranks(s)
            .needing(ist, "it belongs to --method ist"),
        s.ist_eval);
  visit(flag("calibrate-batches", "N",
             "Training batches that set the batch-norm statistics before an evaluation; --ist-eval calibrated: 20")
            .agrees(Agreement::ranks)
            .in(kFromOne)
            .between_ranks(s)
            .needing(!ist || s.ist_eval == SubnetEvaluation::calibrated, "it belongs to --ist-eval calibrated"),
        s.calibrate_batches);
}

template <class Settings, class Visit>
void visit_exchange_flags(Settings& s, Visit& visit) {
  const FlagGroup flag = {kWorkers};
  const MethodTraits& method = traits_of(s.method);
  const bool data_parallel = s.method == TrainingMethod::data_parallel, ist = s.method == TrainingMethod::ist;
  const bool decouples = uses_rule(s, UpdateRule::adamw) || uses_rule(s, UpdateRule::muon);
  const bool codes = method.own_code.empty();
  const bool loses = s.codec != kFloats || s.exchange.starts_with("powersgd");
  const std::string codes_nothing = join({"--method ", method.word, " ", method.own_code});
  visit(flag("codec", "SPEC", "Codec of what ranks exchange; --codec help lists codecs and their exchanges")
            .shapes_result()
            .between_ranks(s)
            .needing(codes, codes_nothing),
        s.codec);
  visit(flag("exchange", "SPEC",
             "Algorithm of the exchange; --codec help tells the default (ist: coordinator or peer [peer])")
            .shapes_result()
            .between_ranks(s)
            .needing(codes, codes_nothing),
        s.exchange);
  visit(flag("min-compress", "N", "Send tensors of fewer elements as floats")
            .shapes_result()
            .in(kNotNegative)
            .between_ranks(s)
            .needing(!ist, "--method ist codes all of a slice")
            .needing(codes, codes_nothing)
            .needing(loses, "--codec none sends floats anyway"),
        s.min_compress);
  visit(flag("keep-float", "PATTERN", "Send tensors whose names match as floats: 'fc2.*'")
            .shapes_result()
            .between_ranks(s)
            .needing(!ist, "--method ist codes all of a slice")
            .needing(codes, codes_nothing)
            .needing(loses, "--codec none sends floats anyway"),
        s.keep_float);
  visit(flag("weight-decay-in-gradient", nullptr, "Code the weight decay with the gradient")
            .shapes_result()
            .between_ranks(s)
            .needing(data_parallel, "it belongs to --method data-parallel")
            .needing(s.weight_decay != 0, "it needs --weight-decay X")
            .needing(!decouples, "adamw and muon keep the weight decay apart from the gradient"),
        s.weight_decay_in_gradient);
  visit(flag("overlap", nullptr, "Send while the backward pass goes on")
            .between_ranks(s)
            .needing(data_parallel, "it belongs to --method data-parallel"),
        s.overlap);
  visit(flag("stale", "N", "0: a step uses its own exchange; 1: it uses that of the step before")
            .shapes_result()
            .in({.low = 0, .high = 1, .tells_both = true})
            .between_ranks(s)
            .needing(data_parallel, "it belongs to --method data-parallel"),
        s.stale);
  visit(flag("check-every", "N", "Steps between comparisons of the ranks' parameters; 0: none")
            .agrees(Agreement::ranks)
            .in(kNotNegative)
            .between_ranks(s)
            .needing(s.method != TrainingMethod::noloco, "--method noloco gives each rank a model of its own"),
        s.check_every);
}

/// The flags of the ranks as processes, and of the network between them.
template <class Settings, class Visit>
void visit_rank_flags(Settings& s, Visit& visit) {
  const FlagGroup flag = {kWorkers};
  visit(flag("link", "SPEC", "Imitate a network between ranks on one machine: rate=1gbit,latency=0.2ms")
            .between_ranks(s)
            .needing(s.transport != RankTransport::nccl, "it does not affect what NCCL moves")
            .needing(s.transport != RankTransport::mpi, "it does not affect what MPI moves"),
        s.link);
  visit(flag("wire", "NAME",
             "What protects the bytes between processes: tls: nobody on the way can read or change them; mac, the "
             "default if rank 0's address is localhost, 127.x.y.z or ::1: nobody can change them; plain: nothing")
            .between_processes(s),
        s.wire);
  visit(flag("dead-after", "X", "Seconds of silence after which a rank counts as lost")
            .in({.low = 0.1, .high = kDay, .tells_both = true})
            .between_beating_processes(s),
        s.dead_after);
  visit(flag("max-restarts", "N", "If a rank is lost, go on from the last checkpoint, N times at most")
            .in(kNotNegative)
            .between_processes(s)
            .needing(!s.checkpoint.empty(), "it needs --checkpoint DIR"),
        s.max_restarts);
  visit(flag("bind", "ADDR", "Address at which rank 0 listens; for other machines it needs a token (TERN_TOKEN_FILE)")
            .between_processes(s),
        s.bind);
  visit(flag("rank", "R", "Be rank R, if a person or a script starts the ranks"), s.rank);
  visit(flag("world-size", "N", "Number of ranks, with --rank"), s.world_size);
  visit(flag("master", "ADDR:PORT", "Address of rank 0, with --rank"), s.master);
}

template <class Settings, class Visit>
void visit_machine_flags(Settings& s, Visit& visit) {
  const FlagGroup flag = {"Machine"};
  const bool on_cpu = s.device == kCpu;
  visit(flag("seed", "N", "Seed of all random numbers").shapes_result().used_by(Use::evaluation).in(kNotNegative),
        s.seed);
  visit(flag("threads", "N", "Threads that compute, in each worker; 0: the workers of a machine share its cores")
            .agrees(Agreement::ranks)
            .used_by(Use::model)
            .in({.low = 0, .high = 1024}),
        s.threads);
  visit(flag("device", "NAME",
             "Where to compute: cpu, cuda or cuda:N (cuda with --transport nccl: each rank takes one of the GPUs that "
             "it sees)")
            .used_by(Use::model),
        s.device);
  visit(
      flag("precision", "NAME", "Number format of activations; tf32: of products alone, on CUDA. Parameters stay fp32")
          .shapes_result()
          .used_by(Use::model),
      s.precision);
  visit(flag("convolution", "NAME", "auto: the fastest algorithm; direct: without Winograd's, more exact")
            .shapes_result()
            .used_by(Use::model),
        s.convolution);
  visit(flag("deterministic", nullptr, "CUDA: the same losses from run to run: no engine is chosen by timing")
            .used_by(Use::model)
            .needing(!on_cpu, "on the CPU losses are the same from run to run"),
        s.deterministic);
  visit(flag("cuda-graph", nullptr,
             "CUDA: record a training step (of several ranks: what comes before the exchange, unless NCCL and "
             "the code let all of it be recorded) once and run it again as a whole")
            .needing(!on_cpu, "it needs --device cuda")
            .needing(!s.workers || s.transport.value_or(RankTransport::inproc) != RankTransport::inproc,
                     "ranks that are threads share one device, and it records one step at a time")
            .needing(!s.workers || s.method != TrainingMethod::ist, "--method ist changes the shapes of the model")
            .needing(!s.workers || !s.overlap, "--overlap exchanges within the backward pass")
            .needing(!s.workers || s.stale == 0, "--stale sends gradients while the next ones are computed")
            .needing(!s.workers || s.delay == 0 || s.transport == RankTransport::nccl,
                     "without NCCL, --delay copies to and from the CPU while the next steps are computed")
            .needing(!s.profile, "--profile times operations that run one by one")
            .needing(s.accumulate == 1, "--accumulate runs operations one by one"),
        s.cuda_graph);

  visit(flag("grace", "X",
             "After a signal, kill a job that makes no progress for X seconds. At the end, wait X seconds for a reader "
             "that takes nothing")
            .used_by(Use::evaluation)
            .in({.low = 0, .high = kDay}),
        s.grace);
}

template <class Settings, class Visit>
void visit_record_flags(Settings& s, Visit& visit) {
  const FlagGroup flag = {"Record"};
  visit(flag("log", "FILE", "Write each step as a JSON line").used_by(Use::evaluation), s.log);
  visit(
      flag("log-every", "N",
           "Read the losses of N steps together, from the GPU and the other ranks, and then write each of them [1; of "
           "ranks on CPUs that exchange in rounds: --local-steps, 50 at most]")
          .agrees(Agreement::ranks)
          .in({.low = 1, .high = kMostStepsTogether}),
      s.log_every);
  visit(flag("tensorboard", "DIR", "Write event files for TensorBoard").used_by(Use::evaluation), s.tensorboard);
  visit(flag("histograms", "N", "Write histograms of weights and gradients after every N steps; 0: none")
            .agrees(Agreement::ranks)
            .in(kNotNegative)
            .needing(!s.log.empty() || !s.tensorboard.empty(), "it needs --log FILE or --tensorboard DIR"),
        s.histograms);
  visit(flag("plot", "FILE.svg", "Draw the loss and the scores"), s.plot);
  visit(flag("profile", nullptr, "Time the operations of training steps, for a table at the end"), s.profile);
  visit(flag("quiet", nullptr, "Print errors only").used_by(Use::evaluation), s.quiet);
}

template <class Settings, class Visit>
void visit_model_flags(Settings& s, Visit& visit) {
  const FlagGroup flag = {"Model"};
  const bool only_reads = s.eval_only || !s.predict.empty();
  visit(flag("checkpoint", "DIR",
             "Checkpoint after each epoch, at the end and at Ctrl-C; keep the newest two. On several machines: one "
             "folder that all see")
            .used_by(Use::model)
            .needing(!only_reads || s.resume, "it needs --resume"),
        s.checkpoint);
  visit(flag("checkpoint-every", "N", "Steps between checkpoints; 0: an epoch")
            .agrees(Agreement::ranks)
            .in(kNotNegative)
            .needing(!s.checkpoint.empty(), "it needs --checkpoint DIR"),
        s.checkpoint_every);
  visit(flag("resume", nullptr, "Go on from the newest checkpoint of --checkpoint DIR").used_by(Use::model), s.resume);
  visit(flag("init", "FILE",
             "Start from these parameters: safetensors, its index of several files, or a checkpoint file "
             "(without training: its averages, if it has them)")
            .used_by(Use::model),
        s.init);
  visit(flag("init-partial", nullptr, "Take the tensors of --init that fit the model, and name the others")
            .agrees(Agreement::ranks)
            .needing(!s.init.empty(), "it needs --init FILE"),
        s.init_partial);
  visit(flag("freeze", "PATTERN", "Do not train the parameters whose names match: 'conv*'")
            .shapes_result()
            .needing(s.method != TrainingMethod::ist, "--method ist trains all parameters"),
        s.freeze);
  visit(flag("save", "FILE", "Write the parameters at the end (safetensors)"), s.save);
  visit(flag("eval-only", nullptr, "Evaluate the model of --init or --resume, without training").used_by(Use::model),
        s.eval_only);
  visit(flag("predict", "FILE...", "Print what the model of --init or --resume predicts for these files")
            .used_by(Use::model)
            .offered_if(task_of(s)->predicts()),
        s.predict);
}

/// Calls `visit(flag, field)` for every setting. The command line, the help, the configuration file, the checks, the
/// log, and the comparisons between ranks and at a resume all use this one list. `Settings` is TrainSettings, const or
/// not. The conditions in Flag::needs are evaluated with its values.
template <class Settings, class Visit>
void visit_flags(Settings& s, Visit&& visit) {
  visit_data_flags(s, visit);
  visit_training_flags(s, visit);
  visit_method_flags(s, visit);
  visit_subnet_flags(s, visit);
  visit_exchange_flags(s, visit);
  visit_rank_flags(s, visit);
  visit_machine_flags(s, visit);
  visit_record_flags(s, visit);
  visit_model_flags(s, visit);
}

}  // namespace tern::trainer
