#include "tern/dist/codec/codec.h"

#include <cstring>

#include "tern/core/error.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/feedback.h"

namespace tern {
namespace {

void check_gradient(const GradientCodec& codec, const GradientTag& tag, const Tensor& gradient) {
  check(
      gradient.defined() && gradient.dtype() == DType::f32 && gradient.format() == MemoryFormat::row_major &&
          gradient.device().type == DeviceType::cpu,
      "codec ", codec.spec(), ", tensor '", tag.name, "': found ",
      gradient.defined() ? join({gradient.dtype(), ", ", gradient.format(), ", on ", gradient.device()}) : "no tensor",
      ", expected f32, row_major, on the CPU");
}

}  // namespace

bool shares_scalers(const GradientCodec& codec) {
  const ScaledCodec* const scaled = codec.scaled();
  return scaled != nullptr && scaled->sharing() == ScalerSharing::on;
}

bool codes_on_devices(GradientCodec& codec) { return codec.messages() != nullptr || codec.parts() != nullptr; }

std::string to_string(CodecPromise promise) {
  switch (promise) {
    case CodecPromise::exact: return "exact";
    case CodecPromise::unbiased: return "unbiased";
    case CodecPromise::contraction: return "contraction";
    case CodecPromise::feedback: return "error feedback";
  }
  return "?";
}

void GradientCodec::encode(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) {
  check_gradient(*this, tag, gradient);
  if (gradient.numel() != 0) append(tag, gradient, bytes);
}

void GradientCodec::decode_add(const GradientTag& tag, std::span<const std::byte> message, Tensor& sum) const {
  check_gradient(*this, tag, sum);
  try {
    add_checked(*this, message, sum);
  } catch (const Error& error) {
    fail({"codec ", spec(), ", tensor '", tag.name, "' ", sum.shape(), ": ", error.what()});
  }
}

void GradientCodec::add_checked(const GradientCodec& codec, std::span<const std::byte> message, Tensor& sum) {
  const auto most = static_cast<size_t>(codec.most_bytes(sum.shape()));
  const bool fixed = codec.traits().fixed_size;
  check(fixed ? message.size() == most : message.size() <= most, "message has ", message.size(), " bytes, expected ",
        fixed ? "" : "at most ", most);
  if (sum.numel() != 0) codec.add(message, sum);
}

double GradientCodec::omega(const GradientTag&, const Tensor&) const { return 0; }

void GradientCodec::load_state(const StateDict& state) {
  check_input(state.size() == 0, "codec ", spec(), " keeps no state; the checkpoint holds ", state.size(),
              " tensors of it");
}

Tensor MessageCodec::encode_difference(const FusedGradients& message, std::span<const Tensor> minus) {
  return encode(differences(message, minus), {});
}

std::vector<Tensor> MessageCodec::means(const Tensor&, kernels::MeanOver, const FusedGradients&) const { return {}; }

void MessageCodec::subtract(const Tensor& message, const Tensor& shared, std::span<const Tensor> from) const {
  const std::vector<Tensor> decoded = FlatTensors::zeros(from).parts;
  decode_add(message.reshape({1, message.numel()}), shared, decoded);
  std::vector<kernels::ScaledAddition> additions;
  for (size_t i = 0; i < from.size(); ++i) additions.push_back({decoded[i], from[i]});
  kernels::add_scaled(additions, {}, -1);
}

Tensor WholeMessageCodec::scalers(const FusedGradients& message) {
  return Tensor::empty({0}, {.device = message.front().gradient.device()});
}

void WholeMessageCodec::append(const GradientTag& tag, const Tensor& gradient, std::vector<std::byte>& bytes) {
  MessageCodec& whole = *this;  // both bases have an `encode`
  append_values<uint8_t>(bytes, whole.encode({{tag, gradient}}, {}).span<uint8_t>());
}

void WholeMessageCodec::add(std::span<const std::byte> message, Tensor& sum) const {
  const Tensor bytes = Tensor::empty({1, static_cast<int64_t>(message.size())}, {.dtype = DType::u8});
  std::memcpy(bytes.raw_data(), message.data(), message.size());
  const MessageCodec& whole = *this;
  whole.decode_add(bytes, {}, {&sum, 1});
}

Tensor WholeMessageCodec::empty_message(const FusedGradients& message) const {
  int64_t bytes = 0;
  for (const auto& [tag, gradient] : message) bytes += most_bytes(gradient.shape());
  return Tensor::empty({bytes}, {.dtype = DType::u8, .device = message.front().gradient.device()});
}

}  // namespace tern
