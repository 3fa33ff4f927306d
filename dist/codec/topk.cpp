#include <algorithm>
#include <limits>

#include "tern/core/error.h"
#include "tern/core/share_of.h"
#include "tern/dist/codec/finite.h"
#include "tern/dist/codec/spec.h"
#include "tern/kernels/topk.h"
#include "tern/kernels/topk_block.h"

namespace tern {
namespace {

/// Keeps the k = ⌈ratio·n⌉ elements of largest magnitude: see kernels/topk.h.
class TopK final : public WholeMessageCodec {
 public:
  explicit TopK(double ratio) : ratio_(ratio) {}

  std::string spec() const override { return join({"topk:ratio=", ratio_}); }
  CodecTraits traits() const override {
    return {.promise = CodecPromise::contraction, .bits = 64 * ratio_, .sparse = true};
  }
  int64_t most_bytes(const Shape& shape) const override { return kernels::topk_bytes(kept(shape.numel())); }

  Tensor encode(const FusedGradients& message, const Tensor& /*shared*/) override {
    const Tensor coded = empty_message(message);
    std::vector<kernels::TopKGradient> parts;
    std::vector<Tensor> values;
    int64_t at = 0;
    for (const auto& [tag, gradient] : message) {
      const int64_t next = at + most_bytes(gradient.shape());
      parts.push_back({gradient, kept(gradient.numel()), coded.slice(at, next)});
      values.push_back(coded.slice((at + next) / 2, next));
      at = next;
    }
    kernels::topk_encode(parts);
    // If the largest elements are finite, all are.
    if (coded.device().type == DeviceType::cpu)
      for (size_t i = 0; i < message.size(); ++i) check_finite(message[i].tag, floats_of(values[i]), kFault);
    else
      watch_.note(message, values, std::numeric_limits<float>::max());
    return coded;
  }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }
  bool can_be_recorded() const override { return true; }
  void decode_add(const Tensor& messages, const Tensor& /*shared*/, std::span<const Tensor> sums) const override {
    add_scaled(messages, 1, sums);
  }
  /// Only the elements that the message holds change.
  void subtract(const Tensor& message, const Tensor& /*shared*/, std::span<const Tensor> from) const override {
    add_scaled(message.reshape({1, message.numel()}), -1, from);
  }

 private:
  void add_scaled(const Tensor& messages, float factor, std::span<const Tensor> sums) const {
    std::vector<kernels::TopKSum> parts;
    each_code(messages, sums, [&](int64_t at, const Tensor& sum) { parts.push_back({sum, kept(sum.numel()), at}); });
    kernels::topk_decode_add(parts, messages, factor);
  }
  int64_t kept(int64_t n) const {
    check(n < int64_t{1} << 32, "topk: ", n, " elements, expected below 2^32");
    return share_of(n, ratio_);
  }

  static constexpr const char* kFault = "has NaN or infinite elements";
  double ratio_;
  GradientWatch watch_{kFault};
};

/// Keeps the elements of largest magnitude of each block: see kernels/topk_block.h.
class BlockTopK final : public WholeMessageCodec {
 public:
  BlockTopK(const kernels::TopKBlockOptions& options, double decay) : options_(options), decay_(decay) {}

  std::string spec() const override {
    return join({"topk-block:keep=", options_.keep, ",side=", options_.side, ",run=", options_.run,
                 ",short=", options_.short_in_full ? "full" : "share", ",bits=", options_.coded_values ? 2 : 32,
                 ",decay=", decay_});
  }
  CodecTraits traits() const override {
    const Shape block = {options_.side, options_.side};
    const kernels::TopKBlockLayout layout(block, options_);
    const int64_t bits = layout.kept() * (layout.place_bits(0) + (options_.coded_values ? 2 : 32));
    return {.promise = CodecPromise::contraction,
            .bits = static_cast<double>(bits) / static_cast<double>(block.numel()),
            .sparse = true};
  }
  int64_t most_bytes(const Shape& shape) const override { return kernels::TopKBlockLayout(shape, options_).bytes(); }

  Tensor encode(const FusedGradients& message, const Tensor& /*shared*/) override {
    const Tensor coded = empty_message(message);
    const Tensor all = Tensor::zeros({std::ssize(message)}, {.device = coded.device()});
    std::vector<Tensor> broken;
    int64_t at = 0;
    for (const auto& [tag, gradient] : message) {
      Tensor codes = coded.slice(at, at + most_bytes(gradient.shape()));
      broken.push_back(all.slice(std::ssize(broken), std::ssize(broken) + 1));
      kernels::topk_block_encode(gradient, options_, codes, broken.back());
      at += codes.numel();
    }
    if (coded.device().type != DeviceType::cpu) {
      watch_.note(message, broken, 0);
      return coded;
    }
    for (size_t i = 0; i < message.size(); ++i)
      if (broken[i].item() != 0) refuse(message[i]);
    return coded;
  }
  void confirm(int64_t steps) const override { watch_.confirm(steps); }
  bool can_be_recorded() const override { return true; }
  void decode_add(const Tensor& messages, const Tensor& /*shared*/, std::span<const Tensor> sums) const override {
    add_scaled(messages, 1, sums);
  }
  std::vector<Tensor> means(const Tensor& messages, kernels::MeanOver over, const FusedGradients& like) const override {
    std::vector<Tensor> means;
    for (const auto& [tag, gradient] : like) means.push_back(Tensor::empty_like(gradient));
    each_code(messages, means,
              [&](int64_t at, Tensor& mean) { kernels::topk_block_mean(messages, at, options_, over, mean); });
    return means;
  }
  /// Only the elements that the message holds change.
  void subtract(const Tensor& message, const Tensor& /*shared*/, std::span<const Tensor> from) const override {
    add_scaled(message.reshape({1, message.numel()}), -1, from);
  }

 private:
  void add_scaled(const Tensor& messages, float factor, std::span<const Tensor> sums) const {
    each_code(messages, sums,
              [&](int64_t at, Tensor& sum) { kernels::topk_block_decode_add(messages, at, options_, factor, sum); });
  }
  [[noreturn]] void refuse(const TaggedGradient& tensor) const {
    finite_statistics(tensor.tag, tensor.gradient, 0);  // throws if an element is NaN or infinite
    fail_input({"codec ", spec(), ", tensor '", tensor.tag.name,
                "': found values whose table leaves the range of f32, expected smaller ones"});
  }

  kernels::TopKBlockOptions options_;
  double decay_;  // of the residual, which ErrorFeedback keeps
  GradientWatch watch_{"has NaN or infinite elements, or values whose table leaves the range of f32"};
};

std::unique_ptr<GradientCodec> make_topk_block(SpecParameters& options) {
  constexpr int64_t kMost = kernels::kMostTopKBlockSide;
  kernels::TopKBlockOptions o;
  o.side = options.integer("side", o.side, 1, kMost);
  o.run = options.integer("run", o.side * o.side, 1, kMost * kMost);
  const int64_t block = std::max(o.side * o.side, o.run);
  o.keep = options.integer("keep", std::min(o.keep, block), 1, block);
  constexpr const char* kShortBlocks[] = {"share", "full"};
  o.short_in_full = options.choice("short", 0, kShortBlocks) == 1;
  constexpr const char* kValueBits[] = {"2", "32"};
  o.coded_values = options.choice("bits", 0, kValueBits) == 0;
  const double decay = options.number("decay", 0, 0, 1);
  options.finish();
  auto codec = std::make_unique<BlockTopK>(o, decay);
  if (decay == 0) return codec;
  return with_built_in_feedback(std::move(codec), decay);
}

std::unique_ptr<GradientCodec> make_topk(SpecParameters& options) {
  const double ratio = options.number("ratio", 0.01, 1e-9, 1);
  options.finish();
  return std::make_unique<TopK>(ratio);
}

}  // namespace

constinit const CodecEntry topk_entry = {"topk", "ratio=0.01 (of the elements, rounded up)", "64·ratio",
                                         "contraction: |g - decoded|² is at most (1 - ratio)·|g|²", make_topk};

constinit const CodecEntry topk_block_entry = {
    "topk-block",
    "keep=64 (of a block of side × side), side=64 (a matrix is cut into such tiles), run=side² (a vector's blocks), "
    "short=share|full (what a shorter block keeps), bits=2|32 (of a value), decay=0 (of the residual; 0: no error "
    "feedback)",
    "keep·(log2(side²) + bits) / side²; and 160 a tensor with bits=2", "contraction; error feedback if decay is not 0",
    make_topk_block};

}  // namespace tern
