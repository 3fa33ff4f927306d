#include <cmath>
#include <map>

#include "tern/core/error.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

/// Adds error feedback to a codec: encodes gradient + residual, then keeps what the message leaves out as the residual.
/// A new residual is on its gradient's device.
class ErrorFeedback final : public GradientCodec, public FeedbackCodec, public MessageCodec {
 public:
  ErrorFeedback(std::string prefix, std::shared_ptr<GradientCodec> inner, double decay)
      : prefix_(std::move(prefix)),
        inner_(std::move(inner)),
        decay_(decay),
        scales_(inner_->traits().promise == CodecPromise::unbiased) {}

  std::string spec() const override { return prefix_ + inner_->spec(); }
  CodecTraits traits() const override {
    CodecTraits traits = inner_->traits();
    traits.promise = CodecPromise::feedback;
    return traits;
  }
  int64_t most_bytes(const Shape& shape) const override {
    return inner_->most_bytes(shape) + (scales_ && shape.numel() != 0 ? 4 : 0);
  }

  /// A message of an unbiased codec holds a scale for each tensor, which only the CPU computes. Scalers would have to
  /// be those of gradient + residual.
  MessageCodec* messages() override { return makes_messages() ? this : nullptr; }
  Tensor scalers(const FusedGradients& message) override { return inner_->messages()->scalers(message); }
  Tensor encode(const FusedGradients& message, const Tensor& shared) override {
    return encode_whole(message, std::vector<Tensor>(message.size()), shared);
  }
  Tensor encode_difference(const FusedGradients& message, std::span<const Tensor> minus) override {
    return encode_whole(message, minus, {});
  }
  void decode_add(const Tensor& messages, const Tensor& shared, std::span<const Tensor> sums) const override {
    inner_->messages()->decode_add(messages, shared, sums);
  }
  std::vector<Tensor> means(const Tensor& messages, kernels::MeanOver over, const FusedGradients& like) const override {
    return inner_->messages()->means(messages, over, like);
  }

  void confirm(int64_t steps) const override { inner_->confirm(steps); }
  bool can_be_recorded() const override { return makes_messages() && inner_->can_be_recorded(); }

  FeedbackCodec* feedback() override { return this; }
  GradientCodec& inner() override { return *inner_; }
  Tensor corrected(const GradientTag& tag, const Tensor& gradient) const override {
    return corrected(tag, gradient, {}, Tensor::empty_like(gradient));
  }
  void keep(const GradientTag& tag, Tensor residual) override { residuals_[tag.name] = std::move(residual); }
  std::unique_ptr<GradientCodec> fresh() const override {
    return std::make_unique<ErrorFeedback>(prefix_, inner_, decay_);
  }

  StateDict state() const override {
    StateDict state;
    for (const auto& [name, residual] : residuals_) state.add(name, residual.clone());
    return state;
  }
  void load_state(const StateDict& state) override {
    residuals_.clear();
    for (const auto& [name, residual] : state) residuals_[name] = residual.clone();
  }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    Tensor whole = corrected(tag, gradient);
    const size_t begin = bytes.size();
    if (scales_) append_value(bytes, static_cast<float>(1 / (1 + inner_->omega(tag, whole))));
    inner_->encode(tag, whole, bytes);
    Tensor sent = Tensor::zeros(gradient.shape());
    add(std::span(bytes).subspan(begin), sent);
    kernels::subtract(whole, sent, whole);
    keep(tag, std::move(whole));
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    if (!scales_) return add_checked(*inner_, message, sum);
    ByteReader reader(message);
    const auto scale = reader.value<float>();
    check(scale > 0 && scale <= 1, "message has a scale of ", scale, ", expected above 0, at most 1");
    Tensor decoded = Tensor::zeros(sum.shape());
    add_checked(*inner_, reader.rest(), decoded);
    kernels::scale(decoded, scale, decoded);
    kernels::accumulate(decoded, sum);
  }

 private:
  bool makes_messages() const { return !scales_ && inner_->messages() != nullptr && inner_->scaled() == nullptr; }
  Tensor encode_whole(const FusedGradients& message, std::span<const Tensor> minus, const Tensor& shared) {
    FusedGradients whole;
    std::vector<Tensor> residuals;  // the same memory
    for (size_t i = 0; i < message.size(); ++i) {
      const auto& [tag, gradient] = message[i];
      residuals.push_back(corrected(tag, gradient, minus[i], place_of(tag, gradient)));
      whole.push_back({tag, residuals.back()});
    }
    const Tensor bytes = inner_->messages()->encode(whole, shared);
    inner_->messages()->subtract(bytes, shared, residuals);
    for (size_t i = 0; i < whole.size(); ++i)
      if (residuals[i].numel() != 0) keep(whole[i].tag, std::move(residuals[i]));
    return bytes;
  }
  /// The memory of the next residual. On a device it is that of the last one, because a recorded step finds it there.
  /// On the CPU it is new, because a message that is refused keeps the last one.
  Tensor place_of(const GradientTag& tag, const Tensor& gradient) const {
    const auto residual = residuals_.find(tag.name);
    const bool stays = residual != residuals_.end() && residual->second.device() == gradient.device() &&
                       gradient.device().type != DeviceType::cpu;
    return stays ? residual->second : Tensor::empty_like(gradient);
  }
  /// gradient - minus + the residual, as `corrected`, in `whole`. `minus` may be undefined.
  Tensor corrected(const GradientTag& tag, const Tensor& gradient, const Tensor& minus, Tensor whole) const {
    const auto residual = residuals_.find(tag.name);
    if (residual == residuals_.end()) return minus.defined() ? difference(gradient, minus) : gradient.clone();
    const Tensor& found = residual->second;
    check_input(found.shape() == gradient.shape() && found.dtype() == gradient.dtype(),
                "error feedback: the residual of '", tag.name, "': found ", found.dtype(), " ", found.shape(),
                ", expected ", gradient.dtype(), " ", gradient.shape(), " as its gradient");
    kernels::add_residual(gradient, minus, found.to(gradient.device()), decay_, whole);
    return whole;
  }

  std::string prefix_;
  std::shared_ptr<GradientCodec> inner_;  // keeps nothing, so that copies share it
  double decay_;                          // of the residual from step to step
  bool scales_;
  std::map<std::string, Tensor> residuals_;
};

}  // namespace

std::unique_ptr<GradientCodec> with_error_feedback(std::unique_ptr<GradientCodec> codec) {
  const CodecPromise promise = codec->traits().promise;
  check_input(promise != CodecPromise::exact, "codec ", codec->spec(), " loses nothing; leave out error-feedback:");
  check_input(promise != CodecPromise::feedback, "codec ", codec->spec(),
              " has error feedback already; leave out error-feedback:");
  check_input(!shares_scalers(*codec), "codec ", codec->spec(),
              " shares scalers, which error-feedback: does not; expected share=auto or off");
  return std::make_unique<ErrorFeedback>("error-feedback:", std::move(codec), 1);
}

std::unique_ptr<GradientCodec> with_built_in_feedback(std::unique_ptr<GradientCodec> codec, double decay) {
  return std::make_unique<ErrorFeedback>("", std::move(codec), decay);
}

}  // namespace tern
