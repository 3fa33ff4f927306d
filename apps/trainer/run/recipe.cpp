#include "tern/trainer/run/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/core/safetensors.h"
#include "tern/core/share_of.h"
#include "tern/dist/exchange/plan.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/dist/methods/demo.h"
#include "tern/dist/methods/independent_subnets.h"
#include "tern/dist/methods/local_sgd.h"
#include "tern/dist/methods/noloco.h"
#include "tern/dist/methods/sharded_subnets.h"
#include "tern/kernels/libraries.h"
#include "tern/layers/embedding.h"
#include "tern/layers/normalization.h"
#include "tern/optim/adam.h"
#include "tern/optim/checkpoint.h"
#include "tern/optim/muon.h"
#include "tern/optim/optimizer.h"
#include "tern/optim/sgd.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/data/loaders.h"
#include "tern/trainer/flags/rules.h"
#include "tern/trainer/flags/words.h"
#include "tern/trainer/rank/console.h"
#include "tern/trainer/run/checkpoint.h"
#include "tern/trainer/run/shards.h"

namespace tern::trainer {
namespace {

/// Calls `f`. The messages of its InputErrors begin with the name of a flag, to which it adds the dashes.
template <class F>
auto as_flag(const F& f) {
  try {
    return f();
  } catch (const InputError& error) {
    throw InputError(std::string("--") + error.what());
  }
}

std::shared_ptr<const StepRule> rule_of(UpdateRule rule, const TrainSettings& s) {
  switch (rule) {
    case UpdateRule::adam: return Adam::rule({});
    case UpdateRule::adamw: return Adam::rule({.decoupled = true});
    case UpdateRule::muon:
      return Muon::rule({.momentum = s.momentum,
                         .iterations = static_cast<int>(s.muon_iterations),
                         .arithmetic = activation_dtype(s),
                         .normalizes_weights = s.muon_normalize});
    case UpdateRule::sgd: return Sgd::rule({});
    case UpdateRule::momentum:
    case UpdateRule::nesterov: break;
  }
  return Sgd::rule({.momentum = s.momentum, .nesterov = rule == UpdateRule::nesterov});
}

/// A group of the optimizer. Its learning rate ends at `until`, as in GroupSpec.
struct Group {
  ParameterGroup group;
  std::optional<double> until = {};
};

/// Moves the parameters for which `leaves` is true from `group` to a second group with the same settings.
template <class Leaves>
ParameterGroup split(ParameterGroup& group, const Leaves& leaves) {
  ParameterGroup second = group;
  std::erase_if(group.parameters, leaves);
  std::erase_if(second.parameters, [&](const NamedParameter& named) { return !leaves(named); });
  return second;
}

/// The parameters that Muon is not for: vectors, embeddings and the last matrix.
std::set<const Parameter*> others_of(Module& model) {
  std::set<const Parameter*> others;
  for (const NamedModule& named : model.modules()) {
    if (const auto* rows = dynamic_cast<const Embedding*>(named.module)) others.insert(&rows->weight);
    if (const auto* bag = dynamic_cast<const EmbeddingBag*>(named.module)) others.insert(&bag->weight);
    if (const auto* norm = dynamic_cast<const LayerNorm*>(named.module)) others.insert({norm->weight, norm->bias});
  }
  const Parameter* last = nullptr;
  for (const NamedParameter& named : model.parameters()) {
    if (named.parameter->value().rank() < 2) others.insert(named.parameter);
    if (!others.contains(named.parameter)) last = named.parameter;
  }
  others.insert(last);
  return others;
}

void check_matrices(const std::string& pattern, const ParameterGroup& group) {
  for (const NamedParameter& named : group.parameters)
    check_input(named.parameter->value().rank() >= 2, "--group: '", pattern, "', rule: muon is for matrices, found '",
                named.name, "' ", named.parameter->value().shape());
}

/// The groups of --group and a group of the rest, without frozen parameters. If a group has no rule of its own, the
/// parameters that Muon is not for go to a second group. If it has no weight decay of its own, the parameters that must
/// not decay go to another one.
std::vector<Group> groups_of(const TrainSettings& s, Module& model) {
  std::vector<GroupSpec> specs;
  std::vector<GroupRule> rules;
  for (const std::string& text : s.group) {
    specs.push_back(parse_group(text, s));
    rules.push_back(specs.back().group);
    if (!specs.back().rule) continue;
    TrainSettings own = s;
    own.momentum = rules.back().settings.momentum.value_or(s.momentum);
    rules.back().settings.rule = rule_of(*specs.back().rule, own);
  }
  specs.emplace_back();  // of the rest
  const auto others = others_of(model);
  std::vector<ParameterGroup> whole = as_flag([&] { return group_parameters(model.parameters(), rules); });
  std::set<const Parameter*> trained;
  for (const NamedParameter& named : model.trained_parameters()) trained.insert(named.parameter);
  std::vector<Group> groups;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::erase_if(whole[i].parameters, [&](const auto& named) { return !trained.contains(named.parameter); });
    check_input(i == s.group.size() || s.freeze.empty() || !whole[i].parameters.empty(), "--group: '",
                specs[i].group.pattern,
                "' has only parameters that --freeze freezes; if it is of the recipe, give groups without it");
    const auto& [spec, lr, rule, until] = specs[i];
    if (rule == UpdateRule::muon) check_matrices(spec.pattern, whole[i]);
    const bool adam = rule == UpdateRule::adam || rule == UpdateRule::adamw;
    if (s.optimizer == UpdateRule::muon && adam && !lr) whole[i].settings.lr_scale = s.adamw_lr / s.lr;
    std::vector<ParameterGroup> parts = {std::move(whole[i])};
    if (s.optimizer == UpdateRule::muon && !parts[0].settings.rule) {
      parts.push_back(split(parts[0], [&](const NamedParameter& named) { return others.contains(named.parameter); }));
      parts[1].settings.rule = rule_of(UpdateRule::adamw, s);
      check_input(!parts[0].settings.momentum || !parts[0].parameters.empty(), "--group: '", spec.pattern,
                  "', momentum: all of its parameters use adamw, which has none");
      parts[1].settings.momentum.reset();
      if (!lr) parts[1].settings.lr_scale = s.adamw_lr / s.lr;
    }
    for (ParameterGroup& part : parts) {
      std::optional<ParameterGroup> kept;
      if (!part.settings.weight_decay) {
        kept = split(part, [&](const NamedParameter& named) { return !decays(model, named.name); });
        kept->settings.weight_decay = 0;
      }
      groups.push_back({std::move(part), until});
      if (kept) groups.push_back({std::move(*kept), until});
    }
  }
  return groups;
}

/// The step at `at`, which below 1 is a share of the run.
int64_t step_at(double at, int64_t total_steps) {
  return at < 1 ? share_of(total_steps, at) : static_cast<int64_t>(at);
}

/// The steps at which the rate changes.
std::vector<int64_t> steps_of(const TrainSettings& s, int64_t total_steps) {
  std::vector<int64_t> steps;
  for (const double at : s.lr_steps) steps.push_back(step_at(at, total_steps));
  return steps;
}

Schedule schedule_without_warmup(const TrainSettings& s, int64_t total_steps) {
  const int64_t steps = std::max<int64_t>(1, total_steps);
  switch (s.lr_schedule) {
    case LrSchedule::constant: break;
    case LrSchedule::poly: return poly_schedule(s.lr, steps, s.lr_power);
    case LrSchedule::step: return step_schedule(s.lr, steps_of(s, total_steps), s.lr_factor);
    case LrSchedule::cosine: return cosine_schedule(s.lr, steps);
  }
  return constant_schedule(s.lr);
}

/// Throws InputError if the schedule is longer than the run, because one of the two must be a mistake. A run of no
/// steps has no schedule. A constant warm-up rate (--warmup-lr) may last to the end.
void check_length(const TrainSettings& s, int64_t total_steps) {
  if (total_steps == 0) return;
  check_input(s.warmup_lr > 0 || step_at(s.warmup, total_steps) <= total_steps, "--warmup: found ", s.warmup,
              ", expected at most the run's ", total_steps, " steps");
  if (s.lr_steps.empty()) return;
  const double last = s.lr_steps.back();
  check_input(last < static_cast<double>(total_steps), "--lr-steps: found ", last, ", expected less than the run's ",
              total_steps, " steps");
  const auto steps = steps_of(s, total_steps);
  const auto fall = std::ranges::is_sorted_until(steps);
  check_input(fall == steps.end(), "--lr-steps: in a run of ", total_steps, " steps found ",
              fall == steps.end() ? 0 : *fall, " after ", fall == steps.end() ? 0 : *(fall - 1),
              ", expected steps in rising order");
}

AveragingOptions averaging_options(const TrainSettings& s) {
  return {.codec = s.codec,
          .codecs = s.codecs,
          .exchange = s.exchange,
          .fusion = {.min_compress = s.min_compress, .keep_float = s.keep_float},
          .seed = static_cast<uint64_t>(s.seed),
          .overlap = s.overlap,
          .stale = s.stale == 1};
}

/// Local SGD itself is a step of rate 1 without momentum.
OuterStep outer_step(const TrainSettings& s) {
  const MethodTraits& method = traits_of(s.method);
  return {.lr = s.outer_lr.value_or(method.outer_lr.value_or(1)),
          .momentum = s.outer_momentum.value_or(method.outer_momentum.value_or(0))};
}

LocalSgd::Options local_sgd_options(const TrainSettings& s) {
  return {.local_steps = s.local_steps,
          .averaging = averaging_options(s),
          .check_every = s.check_every,
          .outer = outer_step(s),
          .streaming = {.fragments = s.fragments, .delay = s.delay, .mix = s.mix},
          .name = std::string(to_string(s.method))};
}

NoLoCo::Options noloco_options(const TrainSettings& s) {
  const OuterStep outer = outer_step(s);
  return {
      .local_steps = s.local_steps, .lr = outer.lr, .momentum = outer.momentum, .seed = static_cast<uint64_t>(s.seed)};
}

IndependentSubnets::Options subnet_options(const TrainSettings& s) {
  return {.local_steps = s.local_steps,
          .seed = static_cast<uint64_t>(s.seed),
          .exchange = find_word<SubnetExchange>(s.exchange).value_or(IndependentSubnets::Options().exchange),
          .momentum = s.ist_momentum,
          .check_every = s.check_every,
          .codec = s.codec,
          .codecs = s.codecs,
          .download = s.ist_download};
}

SubnetPlan plan_of(const Module& model, const TrainSettings& s) {
  const auto* sliced = dynamic_cast<const SubnetModel*>(&model);
  check_input(sliced != nullptr,
              "--method ist: this network has no parts that it can be cut into, such as hidden neurons or filters; "
              "another network needs a SubnetPlan (docs/extending.md, \"A network\")");
  const SubnetPlan plan = sliced->subnet_plan(s.ist_scope);
  if (!plan.layers.empty()) return plan;
  constexpr const char* kCut[] = {"neurons between linear layers", "filters that can be sliced",
                                  "residual blocks whose shortcut changes nothing"};
  std::vector<std::string> offered;
  for (const auto scope : {SubnetScope::fc, SubnetScope::filters, SubnetScope::blocks})
    if (!sliced->subnet_plan(scope).layers.empty()) offered.push_back(to_string(scope));
  fail_input({"--ist-scope ", s.ist_scope, ": this model has no ", kCut[static_cast<size_t>(s.ist_scope)],
              "; expected ", fmt::format("{}", fmt::join(offered, "|"))});
}

/// Reads --init with `load`, and adds flag and file to the messages of its InputErrors.
template <class Load>
void as_init(const std::string& file, const Load& load) {
  try {
    load();
  } catch (const InputError& error) {
    const std::string text = error.what();
    throw InputError("--init: " + (text.starts_with(file) ? text : file + ": " + text));
  }
}

/// The tensors of the file of --init: a model, its slices, or a checkpoint. A training starts from a checkpoint's
/// parameters, even if it has averages.
StateDict initial_state(const TrainSettings& s) {
  if (is_shard_index(s.init)) return join_shards(s.init, kCheckpointedModel);
  const SafetensorsFile file = read_safetensors(s.init);
  if (!is_checkpoint(file)) return file.tensors;
  const Checkpoint checkpoint = to_checkpoint(file, s.init);
  const bool trains = !s.eval_only && s.predict.empty();
  return trains ? checkpoint.section("model") : evaluated_state(checkpoint);
}

void check_freeze(const std::string& pattern, Module& model) {
  as_flag([&] { model.freeze(pattern); });
  check_input(!model.trained_parameters().empty(), "--freeze '", pattern,
              "' matches all parameters, expected some to train");
}

}  // namespace

std::unique_ptr<Module> build_model(const Application& application, const TrainSettings& settings,
                                    const Dataset* data) {
  ModelSpec spec = {.choices = settings.choices, .counts = settings.counts};
  if (data) spec.fields = data->fields();
  ImageSpec images = describe_dataset(settings).spec;
  if (const auto* pictures = dynamic_cast<const ImageDataset*>(data)) images = pictures->spec();
  if (images.numel() > 0) spec.images = training_transform(settings, images).output(images);
  check(application.model != nullptr, application.name, " has no `model`");
  auto model = application.model(spec);
  check(model != nullptr, application.name, ": `model` returned no model");
  return model;
}

void fill_model(const TrainSettings& settings, Module& model, PartialCopy* copied,
                const std::function<void()>& prepare) {
  model.initialize(static_cast<uint64_t>(settings.seed), DType::f32, parse_device(settings.device));
  if (prepare) prepare();
  if (!settings.freeze.empty()) check_freeze(settings.freeze, model);
  if (settings.init.empty()) return;
  as_init(settings.init, [&] {
    const StateDict state = initial_state(settings);
    if (settings.init_partial) {
      const PartialCopy copy = model.load_matching_state(state);
      if (copied != nullptr) *copied = copy;
    } else {
      model.load_state(state);
    }
  });
}

std::unique_ptr<Module> make_model(const Application& application, const TrainSettings& settings, const Dataset* data,
                                   PartialCopy* copied) {
  auto model = build_model(application, settings, data);
  fill_model(settings, *model, copied);
  return model;
}

bool is_sharded(const TrainSettings& settings) {
  return settings.workers && settings.method == TrainingMethod::ist && settings.ist_store == ModelStore::sharded;
}

SubnetCuts sharded_cuts(const TrainSettings& settings, Module& model) {
  SubnetCuts cuts(plan_of(model, settings), model.whole_shapes());
  try {
    check_sharded_cuts(cuts);
  } catch (const InputError& error) {
    throw InputError(std::string("--ist-store sharded: ") + error.what());
  }
  return cuts;
}

void fill_slice(const TrainSettings& settings, Module& model, const SubnetCuts& cuts, const Team& team) {
  model.initialize(static_cast<uint64_t>(settings.seed), DType::f32, {}, home_ranges(cuts, team.rank(), team.size()));
  if (settings.init.empty()) return;
  as_init(settings.init, [&] {
    check_input(is_shard_index(settings.init), settings.init,
                ": found one file of a whole model, expected the index of a model in slices (.index.json), because no "
                "rank may read the whole");
    read_shard(settings.init, model, cuts, team);
  });
}

DType activation_dtype(const TrainSettings& settings) {
  return settings.precision == Precision::bf16 ? DType::bf16 : DType::f32;
}

std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, Module& model) {
  std::vector<ParameterGroup> groups;
  for (Group& group : groups_of(settings, model)) groups.push_back(std::move(group.group));
  const double weight_decay = settings.weight_decay_in_gradient ? 0 : settings.weight_decay;
  auto optimizer =
      std::make_unique<Optimizer>(std::move(groups), settings.lr, weight_decay, rule_of(settings.optimizer, settings));
  optimizer->set_clip_norm(settings.clip_norm);
  return optimizer;
}

Schedule make_schedule(const TrainSettings& settings, int64_t total_steps) {
  check_length(settings, total_steps);
  Schedule schedule = schedule_without_warmup(settings, total_steps);
  const int64_t warmup = step_at(settings.warmup, total_steps);
  if (warmup == 0) return schedule;
  return settings.warmup_lr > 0 ? hold_first(settings.warmup_lr, warmup, std::move(schedule))
                                : warm_up(std::move(schedule), warmup);
}

std::map<size_t, Schedule> make_group_schedules(const TrainSettings& settings, Module& model, int64_t total_steps) {
  std::map<size_t, Schedule> schedules;
  if (total_steps == 0) return schedules;
  const std::vector<Group> groups = groups_of(settings, model);
  const int64_t warmup = step_at(settings.warmup, total_steps);
  TrainSettings own = settings;
  own.warmup = static_cast<double>(warmup);  // in steps, because a share is of the whole run
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].until) continue;
    const int64_t end = step_at(*groups[i].until, total_steps);
    check_input(end <= total_steps, "--group: found until=", end, ", expected at most the run's ", total_steps,
                " steps");
    check_input(warmup <= end, "--group: found until=", end, ", expected --warmup's ", warmup, " steps or more");
    schedules.emplace(i, [scale = groups[i].group.settings.lr_scale, schedule = make_schedule(own, end)](int64_t t) {
      return scale * schedule(t);
    });
  }
  return schedules;
}

std::unique_ptr<DistributedOptimizer> make_method(const TrainSettings& s, Module& model, Optimizer& local,
                                                  Communicator* communicator, const SubnetCuts* cuts) {
  if (!communicator) return std::make_unique<DistributedOptimizer>(model, local);
  if (!s.keep_float.empty()) {  // an error of the pattern names the flag
    std::vector<AveragedTensor> tensors = averaged_parameters(model, to_string(s.method));
    as_flag([&] { leave_uncoded(tensors, s.keep_float); });
  }
  switch (s.method) {
    case TrainingMethod::data_parallel:
      return std::make_unique<DataParallel>(
          model, local, *communicator,
          DataParallel::Options{.averaging = averaging_options(s),
                                .weight_decay_in_gradient = s.weight_decay_in_gradient ? s.weight_decay : 0,
                                .check_every = s.check_every});
    case TrainingMethod::local_sgd:
    case TrainingMethod::diloco:
    case TrainingMethod::sparseloco:
      return std::make_unique<LocalSgd>(model, local, *communicator, local_sgd_options(s));
    case TrainingMethod::noloco: return std::make_unique<NoLoCo>(model, local, *communicator, noloco_options(s));
    case TrainingMethod::demo:
      return std::make_unique<DeMo>(model, local, *communicator, DeMo::Options{.check_every = s.check_every});
    case TrainingMethod::ist:
      if (cuts != nullptr)
        return std::make_unique<ShardedSubnets>(model, local, *communicator, *cuts,
                                                ShardedSubnets::Options{.local_steps = s.local_steps,
                                                                        .seed = static_cast<uint64_t>(s.seed),
                                                                        .momentum = s.ist_momentum,
                                                                        .check_every = s.check_every});
      return std::make_unique<IndependentSubnets>(model, local, *communicator, plan_of(model, s), subnet_options(s));
  }
  fail({"--method: no method ", static_cast<int>(s.method)});
}

std::string note_of_rounds(const TrainSettings& s, int64_t total_steps) {
  const bool alone = !traits_of(s.method).every_step && s.method != TrainingMethod::ist && s.fragments == 1;
  if (!alone || total_steps >= s.local_steps) return {};
  return fmt::format(
      "the run has {} steps, and the first exchange comes after --local-steps {}. So the ranks train alone to the end; "
      "an evaluation shows their mean",
      total_steps, s.local_steps);
}

std::string note_of_bytes(const TrainSettings& s, Module& model, int ranks) {
  if (!traits_of(s.method).own_code.empty() || s.method == TrainingMethod::ist) return {};
  const AveragingOptions options = averaging_options(s);
  const auto codec = make_codec(options.codec, options.codecs), floats = make_codec(kFloats);
  if (!codec->traits().fixed_size) return {};
  const std::string exchange = chosen_exchange(options, *codec, ranks);
  const std::vector<NamedParameter> parameters = model.trained_parameters();
  int64_t coded = 0, ring = 0;
  bool codes = false;
  for (const FusedMessage& message : fuse(averaged_parameters(model, to_string(s.method)), options.fusion)) {
    std::vector<Shape> shapes;
    for (const size_t i : message.members) shapes.push_back(parameters[i].parameter->value().shape());
    const int64_t as_floats = plan_exchange(kFloatExchange, *floats, coded_tensors(*floats, shapes), ranks).sent();
    ring += as_floats;
    codes = codes || message.coded;
    coded += message.coded ? plan_exchange(exchange, *codec, coded_tensors(*codec, shapes), ranks).sent() : as_floats;
  }
  if (!codes && codec->traits().promise != CodecPromise::exact)
    return fmt::format("--codec {} codes nothing: all tensors travel as floats, because of {}", s.codec,
                       s.keep_float.empty() ? "--min-compress" : "--min-compress or --keep-float");
  if (coded <= ring) return {};
  return fmt::format(
      "for the whole model, --codec {} by {} sends {} bytes per rank on average. That is more than the {} bytes of "
      "--codec none by ring",
      s.codec, exchange, grouped(coded / ranks), grouped(ring / ranks));
}

}  // namespace tern::trainer
