#include <algorithm>
#include <limits>

#include "tern/core/error.h"
#include "tern/core/share_of.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/spec.h"
#include "tern/kernels/randk.h"

namespace tern {
namespace {

/// Keeps k = ⌈ratio·n⌉ elements drawn at random, times n/k: see kernels/randk.h.
class RandK final : public WholeMessageCodec {
 public:
  explicit RandK(double ratio) : ratio_(ratio) {}

  std::string spec() const override { return join({"randk:ratio=", ratio_}); }
  CodecTraits traits() const override { return {.bits = 32 * ratio_, .sparse = true}; }
  int64_t most_bytes(const Shape& shape) const override { return kernels::randk_bytes(kept(shape.numel())); }
  double omega(const GradientTag&, const Tensor& gradient) const override {
    return kernels::randk_scale(gradient.numel(), kept(gradient.numel())) - 1;
  }

  Tensor encode(const FusedGradients& message, const Tensor& /*shared*/) override {
    const Tensor coded = empty_message(message);
    std::vector<kernels::RandKGradient> parts;
    std::vector<Tensor> gradients, values;
    int64_t at = 0;
    for (const auto& [tag, gradient] : message) {
      const int64_t next = at + most_bytes(gradient.shape());
      parts.push_back({gradient, tag.key, kept(gradient.numel()), coded.slice(at, next)});
      gradients.push_back(gradient);
      values.push_back(coded.slice(next == at ? at : at + kSeedBytes, next));
      at = next;
    }
    kernels::randk_encode(parts);
    if (coded.device().type == DeviceType::cpu) {
      finite_statistics(message, 0);
      for (size_t i = 0; i < message.size(); ++i) check_finite(message[i].tag, floats_of(values[i]), kFault);
      return coded;
    }
    for (const std::vector<Tensor>& numbers : {gradients, values})
      watch_.note(message, numbers, std::numeric_limits<float>::max());
    return coded;
  }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }
  bool can_be_recorded() const override { return true; }
  void decode_add(const Tensor& messages, const Tensor& /*shared*/, std::span<const Tensor> sums) const override {
    std::vector<kernels::RandKSum> parts;
    each_code(messages, sums, [&](int64_t at, const Tensor& sum) { parts.push_back({sum, kept(sum.numel()), at}); });
    kernels::randk_decode_add(parts, messages);
  }

 private:
  int64_t kept(int64_t n) const {
    check(n < int64_t{1} << 32, "randk: ", n, " elements, expected below 2^32");
    return share_of(n, ratio_);
  }

  static constexpr int64_t kSeedBytes = 8;
  static constexpr const char* kFault = "has NaN or infinite elements, or ones that leave the range of f32 times n/k";
  double ratio_;
  GradientWatch watch_{kFault};
};

std::unique_ptr<GradientCodec> make_randk(SpecParameters& options) {
  const double ratio = options.number("ratio", 0.01, 1e-9, 1);
  options.finish();
  return std::make_unique<RandK>(ratio);
}

}  // namespace

constinit const CodecEntry randk_entry = {"randk", "ratio=0.01 (of the elements, rounded up)",
                                          "32·ratio; and 64 a tensor", "unbiased; variance (1/ratio - 1)·|g|²",
                                          make_randk};

}  // namespace tern
