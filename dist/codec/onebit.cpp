#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tern/core/error.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/spec.h"
#include "tern/kernels/onebit.h"

namespace tern {
namespace {

/// 1-bit SGD (Seide et al., 2014): see kernels/onebit.h. A column of the paper is a row here, all weights of one output
/// unit; a vector is one row.
class OneBit final : public WholeMessageCodec {
 public:
  std::string spec() const override { return "onebit"; }
  CodecTraits traits() const override { return {.promise = CodecPromise::contraction, .bits = 1, .by_rows = true}; }
  int64_t most_bytes(const Shape& shape) const override {
    return kernels::onebit_bytes(shape.numel(), width_of(shape));
  }

  Tensor encode(const FusedGradients& message, const Tensor& /*shared*/) override {
    const Tensor coded = empty_message(message);
    std::vector<Tensor> gradients;
    std::vector<kernels::OneBitGradient> parts;
    int64_t at = 0;
    for (const auto& [tag, gradient] : message) {
      const int64_t next = at + most_bytes(gradient.shape());
      gradients.push_back(gradient);
      parts.push_back({gradient, width_of(gradient.shape()), coded.slice(at, next)});
      at = next;
    }
    if (coded.device().type == DeviceType::cpu)
      finite_statistics(message, 0);
    else
      watch_.note(message, gradients, std::numeric_limits<float>::max());
    kernels::onebit_encode(parts);
    return coded;
  }
  void decode_add(const Tensor& messages, const Tensor& /*shared*/, std::span<const Tensor> sums) const override {
    std::vector<kernels::OneBitSum> parts;
    each_code(messages, sums, [&](int64_t at, const Tensor& sum) {
      parts.push_back({sum, width_of(sum.shape()), at});
    });
    if (messages.device().type == DeviceType::cpu) check_means(messages, parts);
    kernels::onebit_decode_add(parts, messages);
  }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }
  bool can_be_recorded() const override { return true; }

 private:
  static int64_t width_of(const Shape& shape) {
    const int64_t rows = shape.rank() < 2 ? 1 : shape[0];
    return std::max<int64_t>(1, shape.numel() / std::max<int64_t>(1, rows));
  }
  static void check_means(const Tensor& messages, const std::vector<kernels::OneBitSum>& parts) {
    for (int64_t row = 0; row < messages.size(0); ++row)
      for (const auto& [sum, width, at] : parts)
        for (int64_t i = 0; i < 2 * (sum.numel() / width); ++i) {
          float mean;
          std::memcpy(&mean, messages.data<uint8_t>() + row * messages.size(1) + at + 4 * i, sizeof mean);
          check(std::isfinite(mean), "message holds a mean that is not finite");
        }
  }

  GradientWatch watch_{"has NaN or infinite elements"};
};

std::unique_ptr<GradientCodec> make_onebit(SpecParameters& options) {
  options.finish();
  return with_built_in_feedback(std::make_unique<OneBit>());
}

}  // namespace

constinit const CodecEntry onebit_entry = {"onebit", "none", "1; and 64 a column (all weights of one output unit)",
                                           "error feedback, built in", make_onebit};

}  // namespace tern
