#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "tern/core/error.h"
#include "tern/dist/codec/spec.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/feedback.h"

namespace tern {
namespace {

/// x and y of each place, without those of tensors that have no elements.
template <class Pair>
std::vector<Pair> paired(std::span<const Tensor> x, std::span<const Tensor> y) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i].numel() != 0) pairs.push_back({x[i], y[i]});
  return pairs;
}

/// Adds error feedback to a codec: encodes gradient + residual, then keeps what the message leaves out as the residual.
/// What an unbiased codec decodes can be far longer than what it encoded. So its message also holds a factor for each
/// tensor: see with_error_feedback. The factor precedes the codes of the tensor, or the codes of all tensors in a
/// message of MessageCodec. Residuals are on their gradients' device.
class ErrorFeedback final : public GradientCodec, public FeedbackCodec, public MessageCodec, public PartsCodec {
 public:
  ErrorFeedback(std::string prefix, std::shared_ptr<GradientCodec> inner, double decay)
      : prefix_(std::move(prefix)),
        inner_(std::move(inner)),
        decay_(decay),
        has_factors_(inner_->traits().promise == CodecPromise::unbiased) {}

  std::string spec() const override { return prefix_ + inner_->spec(); }
  CodecTraits traits() const override {
    CodecTraits traits = inner_->traits();
    traits.promise = CodecPromise::feedback;
    return traits;
  }
  int64_t most_bytes(const Shape& shape) const override {
    return inner_->most_bytes(shape) + (has_factors_ && shape.numel() != 0 ? kFactorBytes : 0);
  }

  MessageCodec* messages() override { return inner_->messages() == nullptr ? nullptr : this; }
  PartsCodec* parts() override { return inner_->parts() == nullptr || !has_factors_ ? nullptr : this; }
  /// None: shared scalers would have to be those of gradient + residual.
  Tensor scalers(const FusedGradients& message) override {
    return Tensor::empty({0}, {.device = message.front().gradient.device()});
  }
  Tensor encode(const FusedGradients& message, const Tensor& /*shared*/) override {
    return encode_difference(message, std::vector<Tensor>(message.size()));
  }
  Tensor encode_difference(const FusedGradients& message, std::span<const Tensor> minus) override {
    MessageCodec& codec = *inner_->messages();
    const FusedGradients whole = corrected(message, minus);
    const std::vector<Tensor> left = tensors_of(whole);
    const Tensor bytes = codec.encode(whole, {});
    if (!has_factors_) {
      codec.subtract(bytes, {}, left);
      keep_all(whole);
      return bytes;
    }
    const std::vector<Tensor> decoded = FlatTensors::zeros(left).parts;
    codec.decode_add(bytes.reshape({1, bytes.numel()}), {}, decoded);
    const int64_t head = bytes_of_factors(left);
    const Tensor sent = Tensor::empty({head + bytes.numel()}, bytes.options());
    subtract_nearest(decoded, left, sent.slice(0, head));
    sent.slice(head, sent.numel()).copy_from(bytes);
    keep_all(whole);
    return sent;
  }
  void decode_add(const Tensor& messages, const Tensor& /*shared*/, std::span<const Tensor> sums) const override {
    const MessageCodec& codec = *inner_->messages();
    if (!has_factors_) return codec.decode_add(messages, {}, sums);
    const int64_t head = bytes_of_factors(sums), bytes = messages.size(1);
    check(bytes >= head, "messages have ", bytes, " bytes, expected at least ", head);
    for (int64_t row = 0; row < messages.size(0); ++row) {
      const Tensor message = messages.slice(row, row + 1).reshape({bytes});
      const std::vector<Tensor> decoded = FlatTensors::zeros(sums).parts;
      codec.decode_add(message.slice(head, bytes).reshape({1, bytes - head}), {}, decoded);
      add_with_factors(message.slice(0, head), decoded, sums);
    }
  }
  std::vector<Tensor> means(const Tensor& messages, kernels::MeanOver over, const FusedGradients& like) const override {
    return has_factors_ ? std::vector<Tensor>() : inner_->messages()->means(messages, over, like);
  }

  CodedMessage encode_parts(const FusedGradients& message, const Tensor& /*shared*/) override {
    PartsCodec& codec = *inner_->parts();
    const FusedGradients whole = corrected(message);
    const std::vector<Tensor> left = tensors_of(whole);
    const CodedMessage coded = codec.encode_parts(whole, {});
    const std::vector<Tensor> decoded = FlatTensors::zeros(left).parts;
    codec.decode_add_parts(coded.bytes, coded.lengths, {}, decoded);
    const Tensor factors = Tensor::empty({bytes_of_factors(left)}, coded.bytes.options());
    subtract_nearest(decoded, left, factors);
    keep_all(whole);
    CodedMessage sent = {Tensor::empty({factors.numel() + coded.bytes.numel()}, factors.options()), coded.lengths};
    for (int64_t& length : sent.lengths) length += length == 0 ? 0 : kFactorBytes;
    auto copies = split(sent.bytes, sent.lengths, factors, coded.bytes);
    for (auto& [from, to] : copies) std::swap(from, to);
    if (!copies.empty()) kernels::copy_bytes(copies);
    return sent;
  }
  void decode_add_parts(const Tensor& bytes, std::span<const int64_t> lengths, const Tensor& /*shared*/,
                        std::span<const Tensor> sums) const override {
    std::vector<int64_t> inner(lengths.begin(), lengths.end());
    for (int64_t& length : inner) {
      check(length == 0 || length >= kFactorBytes, "a part has ", length, " bytes, expected ", kFactorBytes,
            " or more");
      length -= length == 0 ? 0 : kFactorBytes;
    }
    const auto heads = bytes.numel() - std::accumulate(inner.begin(), inner.end(), int64_t{0});
    const Tensor factors = Tensor::empty({heads}, bytes.options());
    const Tensor codes = Tensor::empty({bytes.numel() - heads}, bytes.options());
    if (const auto copies = split(bytes, lengths, factors, codes); !copies.empty()) kernels::copy_bytes(copies);
    int64_t factor = 0, code = 0;
    for (size_t first = 0; first < inner.size(); first += sums.size()) {
      const std::span<const int64_t> own = std::span(inner).subspan(first, sums.size());
      const int64_t next_code = code + std::accumulate(own.begin(), own.end(), int64_t{0}),
                    next_factor = factor + bytes_of_factors(sums);
      const std::vector<Tensor> decoded = FlatTensors::zeros(sums).parts;
      inner_->parts()->decode_add_parts(codes.slice(code, next_code), own, {}, decoded);
      add_with_factors(factors.slice(factor, next_factor), decoded, sums);
      code = next_code;
      factor = next_factor;
    }
  }

  void confirm(int64_t steps) const override { inner_->confirm(steps); }
  bool can_be_recorded() const override { return inner_->can_be_recorded(); }

  FeedbackCodec* feedback() override { return this; }
  GradientCodec& inner() override { return *inner_; }
  FusedGradients corrected(const FusedGradients& message) override {
    return corrected(message, std::vector<Tensor>(message.size()));
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
  /// Residuals keep their memory if they can, because a recorded step uses it.
  void load_state(const StateDict& state) override {
    std::map<std::string, Tensor> before = std::exchange(residuals_, {});
    for (const auto& [name, loaded] : state) {
      Tensor& residual = residuals_[name];
      residual = before[name];
      if (residual.defined() && residual.shape() == loaded.shape() && residual.dtype() == loaded.dtype())
        residual.copy_from(loaded);
      else
        residual = loaded.clone();
    }
  }

 protected:
  void append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) override {
    const Tensor whole = corrected({{tag, gradient}}).front().gradient;
    std::vector<std::byte> coded;
    inner_->encode(tag, whole, coded);
    const Tensor decoded = Tensor::zeros(gradient.shape());
    add_inner(coded, decoded);
    if (has_factors_) {
      const Tensor factor = Tensor::empty({kFactorBytes}, {.dtype = DType::u8});
      subtract_nearest({&decoded, 1}, {&whole, 1}, factor);
      append_values<uint8_t>(bytes, factor.span<uint8_t>());
    } else {
      const kernels::ScaledAddition left = {decoded, whole};
      kernels::add_scaled({&left, 1}, {}, -1);
    }
    append_values<std::byte>(bytes, coded);
    keep(tag, whole);
  }
  void add(std::span<const std::byte> message, Tensor& sum) const override {
    if (!has_factors_) return add_inner(message, sum);
    check(std::ssize(message) >= kFactorBytes, "message has ", message.size(), " bytes, expected a factor");
    const Tensor factor = Tensor::empty({kFactorBytes}, {.dtype = DType::u8});
    ByteReader reader(message);
    reader.values(factor.span<uint8_t>());
    const Tensor decoded = Tensor::zeros(sum.shape());
    add_inner(reader.rest(), decoded);
    add_with_factors(factor, {&decoded, 1}, {&sum, 1});
  }

 private:
  static constexpr int64_t kFactorBytes = 4;  // f32

  /// Copies from parts with factors, one after the other in `parts`, to all factors and all codes.
  static std::vector<kernels::CopiedBytes> split(const Tensor& parts, std::span<const int64_t> lengths,
                                                 const Tensor& factors, const Tensor& codes) {
    std::vector<kernels::CopiedBytes> copies;
    int64_t at = 0, factor = 0;
    for (const int64_t length : lengths) {
      if (length == 0) continue;
      const int64_t code_at = at + kFactorBytes, end = at + length, next = factor + kFactorBytes;
      copies.push_back({parts.slice(at, code_at), factors.slice(factor, next)});
      copies.push_back({parts.slice(code_at, end), codes.slice(at - factor, end - next)});
      at = end;
      factor = next;
    }
    return copies;
  }
  static int64_t bytes_of_factors(std::span<const Tensor> tensors) {
    return kFactorBytes * std::ranges::count_if(tensors, [](const Tensor& tensor) { return tensor.numel() != 0; });
  }
  /// whole -= f·decoded. Writes each f to `factors`.
  static void subtract_nearest(std::span<const Tensor> decoded, std::span<const Tensor> whole, const Tensor& factors) {
    if (factors.numel() == 0) return;
    Tensor numbers = factors.view(0, {factors.numel() / kFactorBytes}, DType::f32);
    kernels::nearest_factors(paired<kernels::DecodedPair>(whole, decoded), numbers);
    kernels::add_scaled(paired<kernels::ScaledAddition>(decoded, whole), factors, -1);
  }
  /// sums += f·decoded
  static void add_with_factors(const Tensor& factors, std::span<const Tensor> decoded, std::span<const Tensor> sums) {
    if (factors.numel() == 0) return;
    if (factors.device().type == DeviceType::cpu) {
      std::vector<float> numbers(factors.bytes() / sizeof(float));
      std::memcpy(numbers.data(), factors.raw_data(), factors.bytes());
      for (const float factor : numbers)
        check(factor >= 0 && factor <= 1, "message has a factor of ", factor, ", expected 0 to 1");
    }
    kernels::add_scaled(paired<kernels::ScaledAddition>(decoded, sums), factors, 1);
  }
  void add_inner(std::span<const std::byte> message, Tensor sum) const { add_checked(*inner_, message, sum); }

  /// Null if there is none yet.
  const Tensor* residual_of(const GradientTag& tag, const Tensor& gradient) const {
    const auto residual = residuals_.find(tag.name);
    if (residual == residuals_.end()) return nullptr;
    const Tensor& found = residual->second;
    check_input(found.shape() == gradient.shape() && found.dtype() == gradient.dtype(),
                "error feedback: the residual of '", tag.name, "': found ", found.dtype(), " ", found.shape(),
                ", expected ", gradient.dtype(), " ", gradient.shape(), " as its gradient");
    return &found;
  }
  /// Gradient i - minus[i] + its residual. minus[i] may be undefined. On the CPU these are new tensors, because
  /// `encode` may refuse them. On a device they are the residuals, which keep their memory: recorded work finds them
  /// there.
  FusedGradients corrected(const FusedGradients& message, std::span<const Tensor> minus) {
    FusedGradients whole;
    std::vector<kernels::CorrectedGradient> sums;
    for (size_t i = 0; i < message.size(); ++i) {
      const auto& [tag, gradient] = message[i];
      const Tensor* const residual = residual_of(tag, gradient);
      const bool in_place = residual != nullptr && gradient.device().type != DeviceType::cpu;
      const Tensor before = residual == nullptr ? Tensor() : residual->to(gradient.device());
      whole.push_back({tag, in_place ? before : Tensor::empty_like(gradient)});
      if (residual != nullptr)
        sums.push_back({gradient, minus[i], before, whole.back().gradient});
      else if (minus[i].defined())
        kernels::subtract(gradient, minus[i], whole.back().gradient);
      else
        whole.back().gradient.copy_from(gradient);
    }
    if (!sums.empty()) kernels::add_residual(sums, decay_);
    return whole;
  }
  void keep_all(const FusedGradients& left) {
    for (const auto& [tag, residual] : left)
      if (residual.numel() != 0) keep(tag, residual);
  }

  std::string prefix_;
  std::shared_ptr<GradientCodec> inner_;  // keeps no state, so copies share it
  double decay_;                          // of the residual from step to step
  bool has_factors_;
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
