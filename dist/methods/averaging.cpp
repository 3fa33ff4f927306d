#include "tern/dist/methods/averaging.h"

#include <algorithm>
#include <exception>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/kernels/layout.h"

namespace tern {
namespace {

/// Before the name of a tensor of which the exchange keeps this rank's part. No tensor's name begins with a dot.
const std::string kShardPrefix = ".shard.";

/// The tensor that a state belongs to. An exchange can keep several parts of a tensor: "NAME#PART".
std::string owner_of(const std::string& state) {
  const bool of_shard = state.starts_with(kShardPrefix);
  return of_shard ? state.substr(kShardPrefix.size(), state.find('#', kShardPrefix.size()) - kShardPrefix.size())
                  : state;
}

/// Replaces tensors that are not row-major by copies that are, in one launch. Tensors may be undefined.
void bring_into_row_major(std::span<Tensor* const> tensors) {
  std::vector<kernels::Conversion> conversions;
  for (Tensor* tensor : tensors) {
    if (!tensor->defined() || tensor->format() == MemoryFormat::row_major) continue;
    const Tensor copy = Tensor::empty(tensor->shape(), {tensor->dtype(), tensor->device()});
    conversions.push_back({std::exchange(*tensor, copy), copy});
  }
  if (!conversions.empty()) kernels::convert_all(conversions);
}

}  // namespace

void leave_uncoded(std::vector<AveragedTensor>& tensors, const std::string& pattern) {
  if (pattern.empty()) return;
  bool found = false;
  for (AveragedTensor& tensor : tensors) {
    if (!name_matches(tensor.name, pattern)) continue;
    tensor.coded = false;
    found = true;
  }
  check_input(found, "keep-float '", pattern, "' matches none of the model's parameters; the last is '",
              tensors.empty() ? "" : tensors.back().name, "'");
}

std::vector<FusedMessage> fuse(std::vector<AveragedTensor> tensors, const FusionOptions& options, bool one_kind) {
  leave_uncoded(tensors, options.keep_float);
  std::vector<FusedMessage> messages;
  FusedMessage open[2] = {{{}, false}, {{}, true}};
  int64_t bytes[2] = {};
  const auto close = [&](bool coded) {
    if (!open[coded].members.empty()) messages.push_back(open[coded]);
    open[coded].members.clear();
    bytes[coded] = 0;
  };
  for (size_t i = tensors.size(); i-- > 0;) {
    const AveragedTensor& tensor = tensors[i];
    const bool coded = one_kind || (tensor.coded && tensor.elements >= options.min_compress);
    open[coded].members.push_back(i);
    bytes[coded] += 4 * tensor.elements;
    if (bytes[coded] >= options.fusion_bytes) close(coded);
  }
  close(true);
  close(false);
  return messages;
}

std::vector<AveragedTensor> averaged_parameters(Module& model, std::string_view method) {
  std::vector<AveragedTensor> tensors;
  for (const auto& [name, parameter] : model.trained_parameters()) {
    check_input(parameter->value().dtype() == DType::f32, method, ": parameter '", name, "' is ",
                parameter->value().dtype(), ", expected f32");
    tensors.push_back({name, parameter->value().numel()});
  }
  return tensors;
}

std::string chosen_exchange(const AveragingOptions& options, const GradientCodec& codec, int ranks) {
  return options.exchange.empty() ? default_exchange(codec, ranks) : options.exchange;
}

bool codes_nothing(const GradientCodec& codec, std::string_view exchange) {
  return codec.traits().promise == CodecPromise::exact && exchange == kFloatExchange;
}

Averaging::Averaging(Communicator& communicator, std::vector<AveragedTensor> tensors, const AveragingOptions& options)
    : rank_(communicator.rank()),
      tensors_(std::move(tensors)),
      seed_(options.seed),
      codec_(make_codec(options.codec, options.codecs)),
      floats_(make_codec("none")),
      messages_(fuse(tensors_, options.fusion,
                     codes_nothing(*codec_, chosen_exchange(options, *codec_, communicator.size())))),
      means_(tensors_.size()),
      stale_(options.stale) {
  check_input(!options.overlap || !options.stale,
              "averaging: overlap and stale contradict each other: stale messages travel during the whole next step");
  coded_exchange_ = make_exchange(chosen_exchange(options, *codec_, communicator.size()), *codec_, communicator);
  float_exchange_ = make_exchange(kFloatExchange, *floats_, communicator);
  if (!options.overlap) return;
  queue_ = std::make_unique<WorkQueue>([] { set_thread_count(1); });  // one thread, because the other threads compute
}

void Averaging::begin(int64_t step) {
  try {
    wait_for_works();
  } catch (const std::exception&) {  // of a round that was not finished
  }
  failed_ = false;
  step_ = step;
  next_message_ = 0;
  given_.assign(tensors_.size(), {});
  minus_.assign(tensors_.size(), {});
  started_.clear();
}

void Averaging::give_difference(size_t i, const Tensor& tensor, const Tensor& minus) { take(i, tensor, minus); }

void Averaging::give(size_t i, const Tensor& tensor) { take(i, tensor, {}); }

void Averaging::take(size_t i, const Tensor& tensor, const Tensor& minus) {
  check(i < tensors_.size(), "averaging: tensor ", i, " was given, there are ", tensors_.size());
  const AveragedTensor& expected = tensors_[i];
  check(given_.size() == tensors_.size(), "averaging: '", expected.name, "' was given before the round began");
  check(!given_[i].defined(), "averaging: '", expected.name, "' was given twice in step ", step_);
  check(tensor.defined() && tensor.dtype() == DType::f32 && tensor.numel() == expected.elements, "averaging: '",
        expected.name, "' has ", tensor.defined() ? tensor.numel() : 0, " elements of ",
        tensor.defined() ? to_string(tensor.dtype()) : "nothing", ", expected ", expected.elements, " of f32");
  given_[i] = tensor;
  minus_[i] = minus;
  for (; next_message_ < messages_.size() && is_complete(messages_[next_message_]); ++next_message_)
    start(messages_[next_message_]);
}

bool Averaging::is_complete(const FusedMessage& message) const {
  return std::ranges::all_of(message.members, [&](size_t i) { return given_[i].defined(); });
}

void Averaging::start(const FusedMessage& message) {
  std::vector<Tensor*> tensors;
  for (const size_t i : message.members) tensors.insert(tensors.end(), {&given_[i], &minus_[i]});
  bring_into_row_major(tensors);
  FusedGradients gradients;
  std::vector<Tensor> minus;
  for (const size_t i : message.members) {
    const RandomKey key = {.seed = seed_,
                           .purpose = Purpose::codec,
                           .owner = static_cast<uint32_t>(rank_),
                           .step = static_cast<uint32_t>(step_),
                           .tensor = static_cast<uint32_t>(i)};
    gradients.push_back({{tensors_[i].name, key}, given_[i]});
    minus.push_back(minus_[i]);
  }
  auto run = [this, &message, gradients = std::move(gradients), minus = std::move(minus)] {
    MeansToCome means = exchange_of(message).start(gradients, minus);
    if (!stale_) finish_started();
    started_.push_back([this, &message, means = std::move(means)] { keep(message, means()); });
  };
  if (queue_)
    add(std::move(run));
  else
    run();
}

void Averaging::add(std::function<void()> operation) {
  works_.push_back(queue_->add([this, operation = std::move(operation)] {
    if (failed_) return;
    failed_ = true;
    operation();
    failed_ = false;
  }));
}

void Averaging::wait_for_works() {
  std::exception_ptr error;
  for (const Work& work : std::exchange(works_, {})) try {
      work.wait();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  if (error) std::rethrow_exception(error);
}

void Averaging::keep(const FusedMessage& message, std::vector<Tensor> means) {
  for (size_t k = 0; k < message.members.size(); ++k) means_[message.members[k]] = std::move(means[k]);
}

void Averaging::finish_started() {
  while (!started_.empty()) {
    const auto finish_message = std::move(started_.front());
    started_.pop_front();
    finish_message();
  }
}

std::vector<Tensor> Averaging::finish() {
  for (size_t i = 0; i < given_.size(); ++i)
    check(given_[i].defined(), "averaging: '", tensors_[i].name, "' was not given in step ", step_);
  {
    const Stopwatch waiting(waited_);
    if (queue_) add([this] { finish_started(); });
    wait_for_works();
    finish_started();
  }
  given_.clear();
  minus_.clear();
  return std::exchange(means_, std::vector<Tensor>(tensors_.size()));
}

bool Averaging::can_be_recorded() const {
  return !queue_ && !stale_ && std::ranges::all_of(messages_, [this](const FusedMessage& message) {
    return exchange_of(message).can_be_recorded();
  });
}

StateDict Averaging::state() const {
  StateDict state = codec_->state();
  for (const auto& [name, tensor] : coded_exchange_->state()) state.add(kShardPrefix + name, tensor);
  return state;
}

void Averaging::load_state(const StateDict& state, bool after_a_round) {
  StateDict own, shard;
  for (const auto& [name, tensor] : state) {
    const bool of_shard = name.starts_with(kShardPrefix);
    const auto known = std::ranges::find(tensors_, owner_of(name), &AveragedTensor::name);
    check_input(known != tensors_.end(), "the codec's state has a tensor '", name, "', which the model does not have");
    check_input(known->elements == tensor.numel() || (of_shard && tensor.numel() < known->elements),
                "the codec's state of '", name, "' has ", tensor.numel(), " elements, the model's ", known->elements);
    (of_shard ? shard : own).add(of_shard ? name.substr(kShardPrefix.size()) : name, tensor);
  }
  if (after_a_round && codec_->feedback() != nullptr)
    for (const FusedMessage& message : messages_)
      for (const size_t i : message.members)
        check_input(!message.coded || tensors_[i].elements == 0 || own.find(tensors_[i].name) != nullptr,
                    "the codec's state has no residual of '", tensors_[i].name, "', expected one after a round");
  codec_->load_state(own);
  coded_exchange_->load_state(shard);
}

bool Averaging::has_state_named(const std::string& name) const {
  return std::ranges::find(tensors_, owner_of(name), &AveragedTensor::name) != tensors_.end();
}

ExchangeTimes Averaging::times() const {
  if (queue_) return {.wait = waited_};
  return coded_exchange_->times() + float_exchange_->times();
}

}  // namespace tern
