#include "tern/dist/methods/independent_subnets.h"

#include <algorithm>
#include <vector>

#include "tern/core/error.h"
#include "tern/dist/methods/replicas.h"

namespace tern {
namespace {

std::unique_ptr<GradientCodec> upload_codec(const std::string& spec, std::span<const CodecEntry> own) {
  auto codec = make_codec(spec, own);
  check_input(codec->traits().promise != CodecPromise::feedback, "independent subnets: codec ", codec->spec(),
              " keeps a residual per tensor, but its neurons change in every round; expected a codec without one");
  check_input(!shares_scalers(*codec), "independent subnets: codec ", codec->spec(),
              " shares scalers, but each rank sends other neurons; expected share=auto or off");
  return codec->traits().promise == CodecPromise::exact ? nullptr : std::move(codec);
}

std::unique_ptr<GradientCodec> download_format(SubnetDownload numbers) {
  switch (numbers) {
    case SubnetDownload::f32: break;
    case SubnetDownload::fp16: return make_codec("fp16");
    case SubnetDownload::bf16: return make_codec("bf16");
  }
  return nullptr;
}

}  // namespace

IndependentSubnets::IndependentSubnets(Module& model, Optimizer& local, Communicator& communicator,
                                       const SubnetPlan& plan, const Options& options)
    : DistributedOptimizer(model, local),
      options_(options),
      communicator_(communicator),
      cuts_(plan, model),
      store_(communicator, options.exchange, cuts_),
      codec_(upload_codec(options.codec, options.codecs)),
      download_(download_format(options.download)),
      round_(Tensor::zeros({}, {.dtype = DType::i64})) {
  for (const auto& named : model.parameters()) {
    check_input(!named.parameter->frozen(), "independent subnets: '", named.name,
                "' is frozen, expected no frozen parameters");
    parameters_.insert(named.name);
    if (cuts_.find(named.name) == nullptr) shared_.push_back(named);
  }
  check(options.local_steps >= 1, "independent subnets: ", options.local_steps, " local steps, expected 1 or more");
  draw_subnets(cuts_, communicator.size(), options.seed, 0);  // throws before training begins if a layer is too narrow
}

void IndependentSubnets::begin_step(int64_t step) {
  step_ = step;
  if (step % options_.local_steps == 0) {
    begin_round(step / options_.local_steps);
  } else if (whole_) {
    check(!parts_.empty(), "independent subnets: step ", step, " lies within a round of ", options_.local_steps,
          " steps that was neither begun nor loaded");
    install(subnet_);
  }
  subnet_ = {};
  whole_ = false;
}

void IndependentSubnets::step() {
  local_.step();
  if ((step_ + 1) % options_.local_steps == 0) end_round();
}

void IndependentSubnets::begin_round(int64_t round) {
  if (whole_) keep_whole();
  draw(round);
  const StateDict subnet = store_.download(parts_, download_.get());
  install(subnet);
  if (options_.momentum == SubnetMomentum::drop)
    for (const auto& [name, tensor] : local_.state()) tensor.fill(0);
  received_ = {};
  if (!codec_ && !download_) return;
  for (const auto& [name, tensor] : subnet)
    if (parameters_.contains(name)) received_.add(name, tensor.clone());
}

void IndependentSubnets::end_round() {
  store_.upload(parts_, cut_tensors(everything()),
                {.received = received_.size() != 0 ? &received_ : nullptr,
                 .codec = codec_.get(),
                 .seed = options_.seed,
                 .step = static_cast<uint32_t>(step_)});
  install(average_of_uncut(model_, cuts_, communicator_, Account::payload, wait_));
  parts_ = {};
  received_ = {};
  check_after_round(communicator_, shared_, step_, options_.local_steps, options_.check_every);
}

void IndependentSubnets::consolidate() {
  if (whole_) return;
  if (parts_.empty()) {
    install(store_.gather());
  } else {
    subnet_ = everything();
    SubnetStore ended = store_.clone();
    // Downloads of another format are not exactly what the ranks keep, so the changes since then count.
    ended.upload(parts_, cut_tensors(subnet_),
                 {.received = download_ ? &received_ : nullptr, .account = Account::overhead});
    const StateDict rest = average_of_uncut(model_, cuts_, communicator_, Account::overhead, wait_);
    install(ended.gather());
    install(rest);
    of_clones_ = of_clones_ + (ended.times() - store_.times());
  }
  whole_ = true;
}

void IndependentSubnets::draw(int64_t round) {
  *round_.data<int64_t>() = round;
  parts_ = draw_subnets(cuts_, communicator_.size(), options_.seed, static_cast<uint32_t>(round));
}

void IndependentSubnets::keep_whole() {
  const bool travels = options_.momentum == SubnetMomentum::travel;
  store_.keep(cut_tensors(travels ? everything() : model_.state()), parameters_);
}

StateDict IndependentSubnets::cut_tensors(const StateDict& all) const {
  StateDict cut;
  for (const auto& [name, tensor] : all)
    if (cuts_.find(name) != nullptr) cut.add(name, tensor.to(Device{}).to(MemoryFormat::row_major));
  return cut;
}

StateDict IndependentSubnets::everything() {
  StateDict all = model_.state();
  for (const auto& [name, tensor] : local_.state()) all.add(std::string(kOptimizerPrefix) + name, tensor);
  return all;
}

void IndependentSubnets::install(const StateDict& values) {
  StateDict counts;
  for (const auto& [name, tensor] : local_.state())
    if (name.starts_with(kStepState)) counts.add(name, tensor);
  for (const auto& [name, parameter] : model_.parameters())
    if (const Tensor* value = values.find(name)) parameter->set_value(value->to(parameter->value().device()));
  for (const auto& [name, buffer] : model_.buffers())
    if (const Tensor* value = values.find(name)) *buffer = value->to(buffer->device());
  // If shapes have changed, the optimizer has made new state. The new state continues the old step counts.
  for (const auto& [name, tensor] : local_.state()) {
    if (const Tensor* value = values.find(std::string(kOptimizerPrefix) + name))
      tensor.copy_from(*value);
    else if (name.starts_with(kStepState))
      tensor.copy_from(counts.at(name));
  }
}

ExchangeTimes IndependentSubnets::times() const { return store_.times() + of_clones_ + ExchangeTimes{.wait = wait_}; }

StateDict IndependentSubnets::state() {
  check(whole_, "independent subnets: a checkpoint is taken after consolidate");
  StateDict state;
  if (parts_.empty()) return state;
  state.add("round", round_);
  const auto add = [&](const char* prefix, const StateDict& tensors) {
    for (const auto& [name, tensor] : tensors) state.add(prefix + name, tensor);
  };
  add("share.", store_.state());
  add("received.", received_);
  add("subnet.", subnet_);
  return state;
}

void IndependentSubnets::load_state(const StateDict& state, int64_t steps) {
  if (steps % options_.local_steps == 0) return copy_state(state, {}, "independent subnets between rounds");
  const Tensor* round = state.find("round");
  check_input(round != nullptr && round->numel() == 1 && round->dtype() == DType::i64,
              "load: no tensor named 'round' of one i64, independent subnets expect one");
  const int64_t found = *round->data<int64_t>(), expected = steps / options_.local_steps;
  check_input(found == expected, "load: 'round' is ", found, ", independent subnets expect ", expected, " after ",
              steps, " steps");
  draw(expected);
  keep_whole();
  subnet_ = received_ = {};
  for (const auto& [name, tensor] : everything()) {
    const TensorCut* cut = cuts_.find(name);
    subnet_.add(name,
                cut ? Tensor::zeros(subnet_shape(*cut, tensor.shape(), parts_, communicator_.rank())) : tensor.clone());
    if (cut && parameters_.contains(name) && (codec_ || download_)) received_.add(name, subnet_.at(name).clone());
  }
  copy_state(state, this->state(), "independent subnets");
}

}  // namespace tern
